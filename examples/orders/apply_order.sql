-- The fold: what an order has come to. What an event means depends on what happened before it: a cancellation stops an order that has
-- not been shipped, calls a parcel back if the shipping happened after it, and is too late for one that had been shipped already.
create schema if not exists examples;

create or replace function examples.apply_order(model jsonb, event rewind.event) returns jsonb
  language plpgsql immutable parallel safe
as $function$
declare
  v_status text := model ->> 'status';
  v_total numeric := coalesce((model ->> 'total')::numeric, 0);
  v_paid numeric := coalesce((model ->> 'paid')::numeric, 0);
begin
  case event.event_type
    when 'placed' then
      v_status := 'placed';
      v_total := v_total + (event.payload ->> 'total')::numeric;
    when 'item_added' then
      v_total := v_total + (event.payload ->> 'price')::numeric;
    when 'paid' then
      v_paid := v_paid + (event.payload ->> 'amount')::numeric;
      v_status := case v_status when 'cancelled' then 'refund due' when 'placed' then 'paid' else v_status end;
    when 'cancelled' then
      v_status := case v_status when 'placed' then 'cancelled' when 'paid' then 'refund due' else v_status end;
    when 'shipped' then
      v_status := case v_status
        when 'paid' then 'shipped'
        when 'placed' then 'shipped unpaid'
        else 'recall parcel'
      end;
    when 'delivered' then
      v_status := case v_status when 'shipped' then 'delivered' when 'shipped unpaid' then 'delivered unpaid' else v_status end;
    when 'refunded' then
      v_paid := 0;
      v_status := case v_status when 'refund due' then 'refunded' else v_status end;
    else
      return model;
  end case;
  return jsonb_build_object('status', v_status, 'total', v_total, 'paid', v_paid, 'due', v_total - v_paid);
end
$function$;

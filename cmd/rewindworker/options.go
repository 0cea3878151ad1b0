package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

type optionsCmd struct {
	Perspective string `placeholder:"NAME" help:"Options of this perspective."`
	Tree        string `placeholder:"NAME" help:"Options of this tree."`
	JSON        bool   `name:"json" help:"Print JSON, one object per option."`

	Show optionsShowCmd `cmd:"" default:"1" help:"Show the options in effect and where each comes from (default)."`
	Set  optionsSetCmd  `cmd:"" help:"Set options of the installation, a perspective or a tree."`
}

type option struct {
	Option string          `json:"option"`
	Value  json.RawMessage `json:"value"`
	Source string          `json:"source"`
}

const optionsQuery = `
select d.key, rewind._options(o.own) -> d.key,
  case when o.own ? d.key then $3 when s.options ? d.key then 'installation' else 'default' end
from rewind.settings s
cross join jsonb_each(rewind._option_defaults()) d
cross join (
  select coalesce(
    (select p.options from rewind.perspectives p where p.perspective_name = $1),
    (select t.options from rewind.trees t where t.tree_name = $2),
    '{}') as own
) o
order by d.key`

func (c *optionsCmd) scope() (perspective, tree *string, source string, err error) {
	switch {
	case c.Perspective != "" && c.Tree != "":
		return nil, nil, "", usageError{errors.New("--perspective and --tree exclude each other")}
	case c.Perspective != "":
		return &c.Perspective, nil, "perspective", nil
	case c.Tree != "":
		return nil, &c.Tree, "tree", nil
	default:
		return nil, nil, "installation", nil
	}
}

type optionsShowCmd struct{}

func (*optionsShowCmd) Run(ctx context.Context, g *globals, c *optionsCmd) error {
	return c.change(ctx, g, map[string]json.RawMessage{})
}

type optionsSetCmd struct {
	Options []string `arg:"" name:"KEY=VALUE" help:"Options to set; an empty value takes one back."`
}

func (s *optionsSetCmd) Run(ctx context.Context, g *globals, c *optionsCmd) error {
	options := map[string]json.RawMessage{}
	for _, o := range s.Options {
		key, value, found := strings.Cut(o, "=")
		if !found {
			return usageError{fmt.Errorf("%q is not KEY=VALUE", o)}
		}
		options[key] = optionValue(value)
	}
	return c.change(ctx, g, options)
}

// change sets options, if any, and prints those in effect. Setting none is how an unknown perspective or tree is found out.
func (c *optionsCmd) change(ctx context.Context, g *globals, options map[string]json.RawMessage) error {
	perspective, tree, source, err := c.scope()
	if err != nil {
		return err
	}
	pool, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := setOptions(ctx, pool, options, perspective, tree); err != nil {
		return err
	}
	all, err := queryRows[option](ctx, pool, optionsQuery, perspective, tree, source)
	if err != nil {
		return err
	}
	if len(options) > 0 {
		all = slices.DeleteFunc(all, func(o option) bool { return options[o.Option] == nil })
	}
	if c.JSON {
		return printLines(g, all)
	}
	t := newTable(g.stdout, "option", "value", "from")
	for _, o := range all {
		value := string(o.Value)
		var text string
		switch {
		case o.Value == nil || value == "null":
			value = "none"
		case json.Unmarshal(o.Value, &text) == nil:
			value = text
		}
		t.AppendRow([]any{o.Option, value, o.Source})
	}
	t.Render()
	return nil
}

func setOptions(ctx context.Context, pool *pgxpool.Pool, options map[string]json.RawMessage, perspective, tree *string) error {
	_, err := pool.Exec(ctx, `select rewind.set_options(p_options => $1, p_perspective => $2, p_tree => $3)`, jsonText(options), perspective, tree)
	return err
}

// optionValue is a value as written on a command line: JSON, or else text; empty: null.
func optionValue(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // never fails for text
	return quoted
}

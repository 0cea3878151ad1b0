package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// newTable is a table without frills, for people. render ends it.
func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	style := t.Style()
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	style.Format.Header = 0
	t.AppendHeader(header)
	return t
}

// printLines writes one JSON object per element.
func printLines[T any](g *globals, all []T) error {
	for _, v := range all {
		if err := g.printJSON(v); err != nil {
			return err
		}
	}
	return nil
}

// jsonText is a value for a parameter of type jsonb: as text, which goes in every execution mode of pgx.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only what can be JSON is given
	}
	return string(text)
}

// tenantOption is the option of functions that take a stream.
func tenantOption(tenant string) string { return jsonText(map[string]string{"tenant_id": tenant}) }

// note tells people something beside a result; in JSON it has no place.
func (g *globals) note(format string, args ...any) {
	fmt.Fprintf(g.stderr, "note: "+format+"\n", args...)
}

// seconds as a duration, as exact as people want it.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(time.Microsecond).String()
	}
}

// shorten cuts text to a width, on one line.
func shorten(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}

// timeText is a time as all output has it.
func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// count is a number of things, in words.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

package main

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/rewindpg/rewind/internal/bench"
)

// chart shows ratios as bars, with their spread.
type chart struct {
	title string
	names []string
	most  float64 // of the axis
	marks []float64
}

var charts = map[string]chart{
	"baselines": {
		title: "Throughput beside the baseline, which is 1",
		names: []string{
			"append_single", "append_batch", "append_batch_wide", "live_sql", "live_sql_cold", "live_sql_short", "live_sql_short_cold",
			"verify", "rebuild", "feed", "feed_sql",
		},
		most:  1.2,
		marks: []float64{0, 0.25, 0.5, 0.75, 1},
	},
	"growth": {
		title: "What the live path's speed depends on: times as fast as its baseline",
		names: []string{
			"growth_events", "growth_streams", "growth_partitions_1", "growth_partitions_512", "growth_late_5", "growth_late_20", "growth_late_50",
			"growth_perspectives",
		},
		most:  2,
		marks: []float64{0, 0.5, 1, 1.5, 2},
	},
}

const (
	chartWidth  = 760
	labelWidth  = 190
	valueWidth  = 60
	barHeight   = 16
	rowHeight   = 28
	chartTop    = 52
	chartBottom = 34
)

func (c chart) draw(results map[string]bench.Result) (string, error) {
	height := chartTop + rowHeight*len(c.names) + chartBottom
	x := func(v float64) float64 { return labelWidth + min(v, c.most)/c.most*(chartWidth-labelWidth-valueWidth) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d"
  font-family="system-ui, sans-serif" font-size="13">
<title>%[3]s</title>
<rect width="100%%" height="100%%" rx="8" fill="#fbfbf9"/>
<text x="20" y="30" font-size="15" font-weight="600" fill="#222">%[3]s</text>
`, chartWidth, height, html.EscapeString(c.title))
	for _, mark := range c.marks {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>
<text x="%.1f" y="%d" text-anchor="middle" fill="#777" font-size="11">%g</text>
`, x(mark), chartTop-6, x(mark), height-chartBottom, lineColor(mark), x(mark), height-chartBottom+16, mark)
	}
	for i, name := range c.names {
		r, ok := results[name]
		if !ok || r.Ratio == nil {
			return "", fmt.Errorf("there is no ratio %s for chart %q", name, c.title)
		}
		y := chartTop + rowHeight*i
		middle := y + barHeight/2
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#222">%s</text>
<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="#4477aa"/>
<path d="M%.1f %dH%.1f" stroke="#222" stroke-width="1.5"/>
<text x="%d" y="%d" text-anchor="end" fill="#222">%s</text>
`, labelWidth-10, middle+5, name,
			labelWidth, y, x(*r.Ratio)-labelWidth, barHeight,
			x(slices.Min(r.Ratios)), middle, x(slices.Max(r.Ratios)),
			chartWidth-14, middle+5, figure(*r.Ratio))
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// lineColor makes the baseline stand out.
func lineColor(mark float64) string {
	if mark == 1 {
		return "#bb5566"
	}
	return "#ddd"
}

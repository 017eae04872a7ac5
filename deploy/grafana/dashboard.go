// Package grafana describes the dashboards, and writes the JSON that Grafana
// imports: the files beside it, which a test compares. Nothing of the product
// uses it.
//
// A panel is its title, what it tells, its queries and how their values read.
// No panel says anything by colour alone: what has a colour has a word too.
package grafana

import "encoding/json"

// Dashboard is one page, its panels in reading order.
type Dashboard struct {
	UID, Title, Description string
	// PerHost: the page is about one host, the variable $host.
	PerHost bool
	Panels  []Panel
}

// Panel is one picture. Width is of 24 columns, 0 for 12; Height in rows of 30
// pixels, 0 for 8.
type Panel struct {
	Title, Description string
	Kind               Kind
	Unit               Unit
	Width, Height      int
	Queries            []Query
	// Words are what numbers mean, and Steps from which number on it is what.
	Words map[string]Word
	Steps []Step
	// Min and Max bound the axis where they are given.
	Min, Max *float64
}

// Query is one PromQL expression, and what its series are called.
type Query struct{ Expr, Legend string }

// Kind is one of Grafana's panel types.
type Kind string

const (
	Stat     Kind = "stat"
	Series   Kind = "timeseries"
	Timeline Kind = "state-timeline"
	Table    Kind = "table"
)

// Unit is one of Grafana's.
type Unit string

const (
	Seconds Unit = "s"
	Bytes   Unit = "bytes"
	Share   Unit = "percentunit"
	Count   Unit = "none"
	Date    Unit = "dateTimeFromNow" // of milliseconds
)

// Word is what a number reads as.
type Word struct{ Text, Colour string }

// Step is a colour from a number on.
type Step struct {
	From   float64
	Colour string
}

// object keeps JSON short; encoding/json sorts its keys, so that a page is always
// written the same way.
type object = map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

// JSON is the page as Grafana imports it.
func (d Dashboard) JSON() ([]byte, error) {
	variables := []any{object{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}
	if d.PerHost {
		variables = append(variables, object{"name": "host", "label": "Host", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
			"query": object{"query": "label_values(suffrage_agent_up, host)", "refId": "host"}})
	}
	var panels []any
	x, y, row := 0, 0, 0
	for i, p := range d.Panels {
		w, h := or(p.Width, 12), or(p.Height, 8)
		if x+w > 24 {
			x, y, row = 0, y+row, 0
		}
		panels = append(panels, p.object(i+1, object{"x": x, "y": y, "w": w, "h": h}))
		x, row = x+w, max(row, h)
	}
	page := object{
		"uid": d.UID, "title": d.Title, "description": d.Description, "tags": []string{"suffrage"},
		"schemaVersion": 37, "editable": true, "timezone": "browser", "refresh": "30s", "graphTooltip": 1,
		"time":       object{"from": "now-6h", "to": "now"},
		"links":      []any{object{"type": "dashboards", "tags": []string{"suffrage"}, "title": "Suffrage", "asDropdown": false, "keepTime": true}},
		"templating": object{"list": variables}, "panels": panels,
	}
	b, err := json.MarshalIndent(page, "", " ")
	return append(b, '\n'), err
}

func (p Panel) object(id int, at object) object {
	var targets []any
	for i, q := range p.Queries {
		t := object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.Expr, "legendFormat": q.Legend}
		switch p.Kind {
		case Stat:
			t["instant"] = true
		case Table:
			t["instant"], t["format"] = true, "table"
		}
		targets = append(targets, t)
	}
	defaults := object{"unit": p.Unit, "mappings": p.mappings(), "custom": p.custom(),
		"thresholds": object{"mode": "absolute", "steps": p.steps()}}
	if p.Words != nil || p.Steps != nil {
		defaults["color"] = object{"mode": "thresholds"}
	}
	if p.Min != nil {
		defaults["min"] = *p.Min
	}
	if p.Max != nil {
		defaults["max"] = *p.Max
	}
	return object{"id": id, "type": p.Kind, "title": p.Title, "description": p.Description, "gridPos": at, "datasource": source,
		"targets": targets, "fieldConfig": object{"defaults": defaults, "overrides": []any{}}, "options": p.options()}
}

func (p Panel) mappings() []any {
	if p.Words == nil {
		return []any{}
	}
	options, index := object{}, 0
	for _, value := range sorted(p.Words) {
		options[value] = object{"text": p.Words[value].Text, "color": p.Words[value].Colour, "index": index}
		index++
	}
	return []any{object{"type": "value", "options": options}}
}

func (p Panel) steps() []any {
	steps := []any{object{"value": nil, "color": "text"}}
	for _, s := range p.Steps {
		steps = append(steps, object{"value": s.From, "color": s.Colour})
	}
	return steps
}

func (p Panel) custom() object {
	switch p.Kind {
	case Series:
		return object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": false}
	case Timeline:
		return object{"lineWidth": 0, "fillOpacity": 70}
	}
	return object{}
}

func (p Panel) options() object {
	switch p.Kind {
	case Stat:
		return object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "textMode": "value_and_name", "colorMode": "value", "graphMode": "none"}
	case Series:
		return object{"legend": object{"displayMode": "table", "placement": "right", "calcs": []string{"lastNotNull"}}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	case Timeline:
		return object{"showValue": "auto", "rowHeight": 0.9, "mergeValues": true, "legend": object{"displayMode": "list", "placement": "bottom"}}
	}
	return object{"showHeader": true}
}

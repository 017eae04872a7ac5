package page

import (
	"math"

	"suffrage/fitness"
)

// Picture is the fleet as it is drawn: voters in a ring, standbys around them.
type Picture struct {
	Width, Height int
	Nodes         []Node
	Lines         []Line
}

// Node is one host in a Picture.
type Node struct {
	Host
	X, Y float64
}

// Line is one link in a Picture.
type Line struct {
	Link
	X1, Y1, X2, Y2 float64
	// LabelX and LabelY are where its p99 stands, if Labelled.
	LabelX, LabelY float64
	Labelled       bool
}

// pictureOf places the hosts: the same hosts in the same roles are always in the same
// places. Labels are left out where they would cover each other.
func pictureOf(m Model) Picture {
	var voters, others []Host
	for _, h := range m.Hosts {
		if h.Votes() || h.Role == "learner" {
			voters = append(voters, h)
		} else {
			others = append(others, h)
		}
	}
	d := drawing{Picture: Picture{Width: 420, Height: 322}, at: map[string]Node{}}
	rx, ry, ox, oy := 105.0, 92.0, 180.0, 118.0
	switch {
	case len(voters) == 1:
		rx, ry = 0, 0
	case len(voters) > 5 || len(others) > 6:
		d.Width, d.Height = 560, 500
		rx, ry, ox, oy = 165, 145, 250, 210
	}
	around := 360.0 / math.Max(float64(len(voters)), 1)
	d.place(voters, rx, ry, -90, around)
	from := -90 + around/2
	if len(others) > len(voters) { // no room for each between two voters
		around = 360 / float64(len(others))
	}
	d.place(others, ox, oy, from, around)
	for _, l := range m.Links {
		d.draw(l, len(voters) <= 5)
	}
	return d.Picture
}

// drawing is a Picture that is being made.
type drawing struct {
	Picture
	at map[string]Node
}

func (d *drawing) centre() (x, y float64) { return float64(d.Width) / 2, float64(d.Height)/2 - 6 }

func (d *drawing) place(hosts []Host, rx, ry, from, step float64) {
	cx, cy := d.centre()
	for i, h := range hosts {
		a := (from + float64(i)*step) * math.Pi / 180
		n := Node{Host: h, X: round(cx + rx*math.Cos(a)), Y: round(cy + ry*math.Sin(a))}
		d.Nodes = append(d.Nodes, n)
		d.at[h.Name] = n
	}
}

func (d *drawing) draw(l Link, all bool) {
	a, b := d.at[l.A], d.at[l.B]
	line := Line{Link: l, X1: a.X, Y1: a.Y, X2: b.X, Y2: b.Y, Labelled: l.Voters && l.P99 != nil && (all || l.Band != fitness.Under)}
	// Away from an unfit end, where all of its links meet, and off the line itself.
	t := 0.5
	if au, bu := a.Verdict.Status == fitness.Unfit, b.Verdict.Status == fitness.Unfit; !all && au != bu {
		t = 0.36
		if au {
			t = 0.64
		}
	}
	x, y := a.X+t*(b.X-a.X), a.Y+t*(b.Y-a.Y)
	cx, cy := d.centre()
	if r := math.Hypot(x-cx, y-cy); all && r > 1 {
		x, y = x+17*(x-cx)/r, y+13*(y-cy)/r
	}
	line.LabelX, line.LabelY = round(x), round(y+4)
	d.Lines = append(d.Lines, line)
}

package page

import (
	"math"
)

// Picture is the fleet as it is drawn: voters in a ring, standbys around them. It is
// narrow, and as high as it needs to be, so that its letters are of a readable size on
// a phone, where all of it is shown about 330 pixels wide.
type Picture struct {
	Width, Height int
	Nodes         []Node
	Lines         []Line
	// Rest are the links whose p99 has no room in it.
	Rest []Link
}

// Node is one host in a Picture.
type Node struct {
	Host
	X, Y float64
	// Label is its name, as much of it as there is room for, and LabelX where the middle
	// of that is.
	Label  string
	LabelX float64
}

// Line is one link in a Picture.
type Line struct {
	Link
	X1, Y1, X2, Y2 float64
	// Label stands at LabelX, LabelY: the p99, behind a glyph where it is not within its
	// limit; of a link that is past its limit at least the glyph. Else it is empty.
	LabelX, LabelY float64
	Label          string
}

// Half of what a node takes up, the leader's ring included, and how far below its middle
// its name stands.
const (
	nodeHalf   = 22.0
	nameBelow  = 34.0
	pictureTop = 10.0 // by which the middle is above that of the picture: names are below
)

// pictureOf places the hosts: the same hosts in the same roles are always in the same
// places. A p99 that would cover another, or a host, is left out, and listed below.
func pictureOf(m Model) Picture {
	var voters, others []Host
	for _, h := range m.Hosts {
		if h.Votes() || h.Role == "learner" {
			voters = append(voters, h)
		} else {
			others = append(others, h)
		}
	}
	d := drawing{Picture: Picture{Width: 360, Height: 372}, at: map[string]Node{}, letters: 14}
	rx, ry, ox, oy := 88.0, 100.0, 138.0, 142.0
	switch {
	case len(voters) == 1:
		rx, ry = 0, 0
	case len(voters) > 5 || len(others) > 6:
		d.Height, d.letters = 620, 9
		rx, ry, ox, oy = 92, 190, 142, 262
	case len(voters) > 3 || len(others) > 3:
		d.Height, d.letters = 500, 11
		rx, ry, ox, oy = 100, 150, 142, 202
	}
	around := 360.0 / math.Max(float64(len(voters)), 1)
	d.place(voters, rx, ry, -90, around)
	from := -90 + around/2
	if len(others) > len(voters) { // no room for each between two voters
		around = 360 / float64(len(others))
	}
	d.place(others, ox, oy, from, around)
	d.links(m.Links)
	return d.Picture
}

// drawing is a Picture that is being made.
type drawing struct {
	Picture
	at      map[string]Node
	letters int   // of a name
	taken   []box // by hosts, their names and labels
}

func (d *drawing) centre() (x, y float64) {
	return float64(d.Width) / 2, float64(d.Height)/2 - pictureTop
}

func (d *drawing) place(hosts []Host, rx, ry, from, step float64) {
	cx, cy := d.centre()
	for i, h := range hosts {
		a := (from + float64(i)*step) * math.Pi / 180
		n := Node{Host: h, X: round(cx + rx*math.Cos(a)), Y: round(cy + ry*math.Sin(a)), Label: brief(h.Name, d.letters)}
		name := wordAt(n.X, n.Y+nameBelow, n.Label, nameLetter)
		n.LabelX = round(name.within(float64(d.Width)))
		d.Nodes = append(d.Nodes, n)
		d.at[h.Name] = n
		d.taken = append(d.taken, box{n.X, n.Y, nodeHalf, nodeHalf}, box{n.LabelX, name.y, name.halfX, name.halfY})
	}
}

package lab

import "errors"

// Between sets the links between two hosts, in both directions.
func (f *Fleet) Between(a, b string, l Link) error {
	return errors.Join(f.OneWay(a, b, l), f.OneWay(b, a, l))
}

// OneWay sets the link from one host to another.
func (f *Fleet) OneWay(from, to string, l Link) error {
	return f.Network.Set(f.Node(from).Number, f.Node(to).Number, l)
}

// Around sets all links from and to a host, but those with the tests' process.
func (f *Fleet) Around(host string, l Link) error {
	var errs []error
	for _, n := range f.Nodes {
		if n.Name != host {
			errs = append(errs, f.Between(host, n.Name, l))
		}
	}
	return errors.Join(errs...)
}

// Apart cuts all links between the one group of hosts and the other.
func (f *Fleet) Apart(these, others []string) error {
	var errs []error
	for _, a := range these {
		for _, b := range others {
			errs = append(errs, f.Between(a, b, Link{Cut: true}))
		}
	}
	return errors.Join(errs...)
}

// Heal makes the whole network what it was at first.
func (f *Fleet) Heal() error { return f.Network.Clear() }

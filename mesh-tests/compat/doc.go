// Package compat proves that suffrage observe, and the Observer below it, see
// the older releases of etcd as they are: real servers of 3.5 and 3.6, three
// members each over TLS.
//
// It has tests only, and they skip unless these variables name the programs;
// `make compat` builds the programs and sets them:
//
//	SUFFRAGE_ETCD_35, SUFFRAGE_ETCD_36   an etcd server of that series
//	SUFFRAGE_BIN                         suffrage itself
//
// An old patch release may be named by hand: whether it must be called unsafe
// is worked out from the version that the program tells.
package compat

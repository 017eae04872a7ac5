// Package page looks at the page in a real Chromium: what is in the DOM, not what a
// handler answered. The made-up fleets of page/pagetest show what a real one shows
// seldom; TestFleet looks at the demo's, in which a voter becomes slow while the page is
// open, and whose controllers end.
//
// It has tests only, and they skip unless these variables name the programs; `make
// page-test` sets them:
//
//	SUFFRAGE_CHROMIUM   Chromium
//	SUFFRAGE_BIN        suffrage itself
//
// Everything that a page asks for, logs or throws is kept: a request to elsewhere, an
// error on the console and a violation of the policy fail the test that was at it.
package page

// Package prometheus proves that a real Prometheus can work with what is in
// deploy: it reads the scrape jobs and the rules, its promtool runs their unit
// tests, every query of every dashboard panel has a result with a running fleet,
// and each alert fires when what it is about is wrong with that fleet.
//
// It has tests only, and they skip unless these variables name the programs;
// `make prometheus` sets them:
//
//	SUFFRAGE_PROMETHEUS   the folder of prometheus and promtool
//	SUFFRAGE_BIN          suffrage itself
//	SUFFRAGE_CLOCK_BIN    suffrage with a clock that can be set: mesh-tests/clock.sh
//
// The rules are as deployed, but for how long something has to hold: nobody would
// wait for hours. That is what promtool's tests are for.
package prometheus

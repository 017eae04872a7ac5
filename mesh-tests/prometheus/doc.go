// Package prometheus proves that a real Prometheus can work with what is in
// deploy: it reads the scrape jobs and the rules, its promtool runs their unit
// tests, every query of every dashboard panel has a result with a running fleet,
// and alerts fire when something is wrong with that fleet, and go again.
//
// It has tests only, and they skip unless these variables name the programs;
// `make prometheus` sets them:
//
//	SUFFRAGE_PROMETHEUS   the folder of prometheus and promtool
//	SUFFRAGE_BIN          suffrage itself
//
// The rules are as deployed, but for how long something has to hold: nobody would
// wait for hours. That is what promtool's tests are for.
package prometheus

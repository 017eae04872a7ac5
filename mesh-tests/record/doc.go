// Package record keeps what a scenario of mesh-tests did, and judges it.
//
//   - Run is one line on one run: which scenario, how it ended, what clients saw
//     of it, how long the fleet took to be well again. Every run appends one, so
//     that the figures of docs/reliability.md are counted and not remembered.
//   - Recording is what a run leaves when it fails: the clients' history, the
//     member lists and decisions that were seen, the journal with what was under
//     way, and what agents and controllers told Prometheus. Judge looks at it with
//     no fleet there, by the same rules as at the end of the run:
//
// go test ./mesh-tests/record -run TestJudge -v -args DIRECTORY
package record

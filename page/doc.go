// Package page is the page in the browser: what a controller knows of the fleet,
// made for people who look. It is served by the controller's process.
//
// One value, the Model, is made from one Look by Of; the HTML, and the JSON at
// /v1/fleet, are the same Model. A HostModel is that of one host with its windows,
// at /v1/hosts/NAME. docs/page.md describes both; keys are added, never renamed.
//
// The page asks four things in the order in which somebody who is on call does: is
// quorum safe, who votes, why is nothing moved (or what would be), what is going on.
//
// What it holds to:
//
//   - It changes nothing, and takes only GET and HEAD, where no Owner is given. Where
//     one is, an order is shown first with what it would do. It is done only by a form
//     that this process made for what would be done at that moment, at most ten minutes
//     ago, that comes from a page of its own, and that says who it is; the record has
//     that, and from where it came.
//   - All text from the fleet (names, errors, reasons, notes) is escaped by
//     html/template and never put together as HTML; the script makes no HTML either.
//   - The policy is strict: no inline script or style, nothing from elsewhere, no
//     frame, no HTML from strings (Trusted Types).
//   - A request whose Host is a name that is not ours is refused, so that no page of
//     somebody else's reads this one through DNS.
//   - On another address than loopback there is only mutual TLS with the roster's
//     keys, as with agents: Listen sees to it.
//   - The page works without its script: it is then loaded again every five seconds.
//     With it, the page is fetched every two seconds and what differs is put in place,
//     so focus, scroll and selection stay.
//   - How old the figures are is always in sight, and that they are not those of now
//     is said in words once the controller does not answer or its rounds stop.
//
// Nothing is said by colour alone: every state has a word and a shape.
//
// Bounds: a request's headers 16 KiB, a form 4 KiB, 32 connections, an answer's time 30 s; History
// keeps 300 events; of a fleet with more than five voters only the links that are
// not well are labelled in the picture, and all are in its table.
package page

// Package pages reads what the pages show, for the tests that type it: their fenced
// blocks, the commands in them, and, in By, which test runs each.
//
//	block    what stands between two fences
//	command  a line of a block that a person types; a loop, or what goes on behind a
//	         backslash, is one
//	By       who runs a command: a test, a stage of .ci/run, or nobody, with the reason
//	Verb     who runs a command that pages only name within their text
//
// Tests that are Typing take the words from the page, so that a page cannot show one thing
// and the test run another. What is put in the place of a word (an address, a directory)
// stands in the test that does it. Other tests that By and Verb name have the command's
// verb in words of their own. That each does is checked in its source, by the tests of
// cmd/suffrage.
package pages

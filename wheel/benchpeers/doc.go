// Package benchpeers runs the contest of package wheel on other people's timing
// wheels. It is a module of its own, so that they are no dependencies of DueMQ.
// README.md has the results.
package benchpeers

// Package fakeagent is a peer for tests of the control plane's clients: it answers what a test scripts, and keeps what
// it was asked.
//
// # What
//
// An Agent listens on a free loopback port and speaks fetchwire. It offers DescribeCluster and FindCoordinator of its
// own, naming itself as the only node, and whatever On adds. A peer started as a broker offers none of Cluster
// Mirroring's calls.
package fakeagent

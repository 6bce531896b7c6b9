// Package replicator is the mirror agent.
package replicator

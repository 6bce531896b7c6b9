// Package index is the offset, time and transaction indexes of one segment.
package index

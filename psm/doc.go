// Package psm is producer state of one partition.
package psm

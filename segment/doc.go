// Package segment is partition directories in Kafka's on-disk format.
package segment

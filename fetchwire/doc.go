// Package fetchwire is the part of the Kafka protocol a mirror needs.
package fetchwire

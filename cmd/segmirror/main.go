// Command segmirror mirrors Kafka partitions at the level of their segment files.
package main

func main() {}

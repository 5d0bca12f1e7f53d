// Command broker is a Kafka broker in memory, for tests: franz-go's kfake in a process of its
// own, which a test can stop and let go on. It says where it listens and ends with SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	topics := flag.String("topics", "otlp_profiles", "topics, with commas between them")
	partitions := flag.Int("partitions", 3, "of each topic")
	maxMessage := flag.Int("max-message-bytes", 4<<20, "of a batch of messages")
	flag.Parse()
	if err := run(*topics, *partitions, *maxMessage); err != nil {
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(1)
	}
}

func run(topics string, partitions, maxMessage int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1),
		kfake.SeedTopics(int32(partitions), strings.Split(topics, ",")...),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": strconv.Itoa(maxMessage)}))
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer cluster.Close()
	fmt.Fprintln(os.Stderr, "listening on", cluster.ListenAddrs()[0])
	<-ctx.Done()
	return nil
}

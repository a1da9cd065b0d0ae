// SPDX-License-Identifier: GPL-2.0

// Command mqfair-nri gives pods and containers of Kubernetes the weights in their annotations.
//
// It writes io.weight, the kernel's own file, and `mqfair follow` mirrors that to io.mqfair.weight.
// So a container starts on a node without mqfair, too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/containerd/nri/pkg/stub"
)

func run(socket, index, cgroups string) error {
	options := []stub.Option{stub.WithPluginName("mqfair"), stub.WithPluginIdx(index), stub.WithOnClose(lost)}
	if socket != "" {
		options = append(options, stub.WithSocketPath(socket))
	}
	connection, err := stub.New(&plugin{cgroups: cgroups, complain: complain}, options...)
	if err != nil {
		return err
	}
	// Signals keep their effect: Run() does not end with its context, and the program has nothing to put away.
	return connection.Run(context.Background())
}

// lost ends the program, so that its service starts it again when the runtime is back.
func lost() {
	complain("the runtime closed the connection")
	os.Exit(1)
}

func complain(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "mqfair-nri: "+format+"\n", values...)
}

func main() {
	socket := flag.String("socket", "", "socket of the runtime (default that of NRI)")
	index := flag.String("index", "50", "order among the plugins, two digits")
	cgroups := flag.String("cgroups", "/sys/fs/cgroup", "where the cgroups are")
	flag.Parse()
	if err := run(*socket, *index, *cgroups); err != nil {
		complain("%v", err)
		os.Exit(1)
	}
}

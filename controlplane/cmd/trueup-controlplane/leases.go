// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"trueup.dev/controlplane"
	"trueup.dev/controlplane/internal/leases"
)

const defaultLeaseGrace = 10 * time.Second

// addLeaseFlags adds the flags for programs that share a control plane. They are hidden, because a user cannot pass a
// listener.
func (s *settings) addLeaseFlags(flags *pflag.FlagSet) {
	flags.StringVar(
		&s.leases, "leases", "",
		"directory of the unix socket that is passed as file descriptor 3; run while programs are connected to it, "+
			"and print to them instead of standard output",
	)
	flags.DurationVar(&s.leaseGrace, "lease-grace", defaultLeaseGrace, "how long to run without a connected program")
	for _, name := range []string{"leases", "lease-grace"} {
		_ = flags.MarkHidden(name) // the flags exist
	}
}

// serveLeases runs the control plane until no program is connected, or until ctx ends.
func (s settings) serveLeases(ctx context.Context) error {
	listener, err := leases.Inherited()
	if err != nil {
		return fmt.Errorf("leases %s: file descriptor 3: %w", s.leases, err)
	}
	ctx, expired := context.WithCancel(ctx)
	defer expired()
	held := leases.Serve(s.leases, listener, s.leaseGrace, expired)
	defer held.Close()
	return controlplane.Run(ctx, s.Options, func(cp *controlplane.ControlPlane) error {
		var line bytes.Buffer
		if err := s.announce(&line, cp); err != nil {
			return err
		}
		held.Ready(line.Bytes())
		return nil
	})
}

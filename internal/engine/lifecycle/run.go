// SPDX-License-Identifier: Apache-2.0

// Package lifecycle runs managers of controller-runtime.
package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// stopTimeout is how long a manager may take to stop if its caches are not synced. None of its controllers has been
// started, so there are no calls to wait for.
const stopTimeout = 3 * time.Second

// Run runs a manager until the context ends and the manager has stopped, or until the manager fails. The options of the
// manager limit how long it may take to stop.
//
// A manager that waits for its caches does not stop, and a cache may never sync. In that case Run returns an error
// after a few seconds. The error contains the result of missing, the names of the caches that are not synced. Nothing
// else is started.
func Run(ctx context.Context, mgr manager.Manager, missing func() []string) error {
	begun := &afterCaches{reached: make(chan struct{})}
	if err := mgr.Add(begun); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- mgr.Start(running)
	}()
	select {
	case err := <-ended:
		return err
	case <-begun.reached:
	case <-ctx.Done():
		// Do not cancel Start yet: it would spin until the caches are synced.
		select {
		case err := <-ended:
			return err
		case <-begun.reached:
		case <-time.After(stopTimeout):
			go func() {
				<-begun.reached
				stop()
			}()
			return fmt.Errorf(
				"stopped before the caches synced; they keep running until the process ends: %s", strings.Join(missing(), ", "),
			)
		}
	}
	defer context.AfterFunc(ctx, stop)()
	return <-ended
}

// afterCaches is started when all caches are synced.
type afterCaches struct{ reached chan struct{} }

// NeedLeaderElection returns false, so that it is not the first runnable that a leader starts.
func (*afterCaches) NeedLeaderElection() bool { return false }

func (a *afterCaches) Start(context.Context) error {
	close(a.reached)
	return nil
}

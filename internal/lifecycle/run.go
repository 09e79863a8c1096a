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

// patience is how long a manager whose caches are not filled may take to end. No controller of it has been started, so that there are no calls to wait for.
const patience = 3 * time.Second

// Run runs a manager until the context ends and the manager has stopped, for which it takes the time that its own options grant; or until it has failed.
//
// A manager that waits for its caches does not stop, and one of them may never be filled: then an error is returned after some seconds, and nothing else is
// begun. It says what missing returns, the names of caches that are not filled.
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
		// Start must not know yet: it would spin until the caches are filled.
		select {
		case err := <-ended:
			return err
		case <-begun.reached:
		case <-time.After(patience):
			go func() {
				<-begun.reached
				stop()
			}()
			return fmt.Errorf("stopped while caches were not filled, which goes on until the process ends: %s", strings.Join(missing(), ", "))
		}
	}
	defer context.AfterFunc(ctx, stop)()
	return <-ended
}

// afterCaches is started when all caches are filled.
type afterCaches struct{ reached chan struct{} }

// NeedLeaderElection keeps it from being the first of what a leader starts.
func (*afterCaches) NeedLeaderElection() bool { return false }

func (a *afterCaches) Start(context.Context) error {
	close(a.reached)
	return nil
}

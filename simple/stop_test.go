// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/simple"
)

// An informer may never sync: because permissions are missing, or because the API server does not support a selector.
func TestRunEndsWhileAnInformerIsNotFilled(t *testing.T) {
	e := newEnv(t)
	config := e.config("unfilled")
	config.GracefulShutdownTimeout = time.Second
	config.ManagedKinds = []simple.AppManagedKind{
		{
			Kind: widgetKind, Watcher: &simple.Watcher{},
			ReconcileOptions: simple.ReconcileOptions{FieldSelectors: []string{"spec.title=it"}},
		},
	}
	made := e.make(config)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	stop()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "before the caches synced") ||
			!strings.HasSuffix(err.Error(), ": widgets."+group) {
			t.Errorf("Run returned %v, want the informer that is not synced", err)
		}
	case <-time.After(apitest.Timeout):
		t.Error("Run did not return")
	}
}

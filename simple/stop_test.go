// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"trueup.dev/internal/apitest"
	"trueup.dev/simple"
)

// An informer may wait for ever: for permissions, or because of a selector that the API server does not support.
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
		if err == nil || !strings.Contains(err.Error(), "not filled") || !strings.HasSuffix(err.Error(), ": widgets."+group) {
			t.Errorf("Run returned %v, want what was waited for", err)
		}
	case <-time.After(apitest.Patience):
		t.Error("Run does not return")
	}
}

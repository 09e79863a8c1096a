// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFailures(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	boom := errors.New("boom")
	tests := map[string]struct {
		log   func(logr.Logger)
		times int
		last  error
	}{
		"nothing": {log: func(logr.Logger) {}},
		"a reconcile that failed": {
			log:   func(l logr.Logger) { l.Error(boom, "Reconciler error") },
			times: 1, last: boom,
		},
		"through derived loggers": {
			log: func(l logr.Logger) {
				l.WithName("a").WithValues("k", "v").Error(errors.New("first"), "Reconciler error", "x", 1)
				l.WithValues("k", "v").Error(boom, "Reconciler error")
			},
			times: 2, last: boom,
		},
		"a step of a reconcile, which the reconcile returns": {
			log: func(l logr.Logger) { l.Error(boom, "unable to sync") },
		},
		"a conflict": {
			log: func(l logr.Logger) { l.Error(apierrs.NewConflict(resource, "a", boom), "Reconciler error") },
		},
		"an existing child that the cache did not contain": {
			log: func(l logr.Logger) { l.Error(apierrs.NewAlreadyExists(resource, "a"), "Reconciler error") },
		},
		"no error": {
			log: func(l logr.Logger) { l.Info("Reconciler error") },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := &failures{next: slog.DiscardHandler}
			tc.log(logr.FromSlogHandler(f))
			if times, last := f.seen(); times != tc.times || !errors.Is(last, tc.last) {
				t.Errorf("seen() = %d, %v; want %d, %v", times, last, tc.times, tc.last)
			}
		})
	}
}

func TestFailures_passesOn(t *testing.T) {
	var out strings.Builder
	f := &failures{next: slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})}
	log := logr.FromSlogHandler(f).WithValues("site", "shop")
	log.V(1).Info("unheard")
	log.Info("hello")
	log.Error(errors.New("boom"), "Reconciler error")
	want := "level=INFO msg=hello site=shop\nlevel=ERROR msg=\"Reconciler error\" site=shop err=boom\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

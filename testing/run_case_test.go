// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

var (
	scheme = fixture.NewScheme()
	noon   = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func newResource(name string) *fixture.Resource {
	return &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// story is what the functions of a case were called with, a line each.
type story struct {
	t     *testing.T
	lines []string
}

type preparedKey struct{}

func prepared(ctx context.Context) context.Context {
	return context.WithValue(ctx, preparedKey{}, true)
}

// tell adds a line. What is the same for all functions of all kinds of cases is not told, but must be there.
func (s *story) tell(ctx context.Context, who string, metadata map[string]any) {
	s.t.Helper()
	s.lines = append(s.lines, fmt.Sprintf("%s: prepared=%t stash=%t recursive=%t metadata=%v",
		who, ctx.Value(preparedKey{}) != nil, stash.Configured(ctx), validation.IsRecursive(ctx), metadata))
	if now := rtime.RetrieveNow(ctx); !now.Equal(noon) {
		s.t.Errorf("%s: now is %s, want %s", who, now, noon)
	}
	if _, err := logr.FromContext(ctx); err != nil {
		s.t.Errorf("%s: %s", who, err)
	}
	got, ok := ctx.Deadline()
	if want, limited := s.t.Deadline(); ok != limited || !got.Equal(want) {
		s.t.Errorf("%s: the deadline is %s (%t), want that of the test: %s (%t)", who, got, ok, want, limited)
	}
}

// work needs a given object and makes another one.
func work(ctx context.Context, c reconcilers.Config) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(configMap("given")), &corev1.ConfigMap{}); err != nil {
		return err
	}
	return c.Create(ctx, configMap("made"))
}

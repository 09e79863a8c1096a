// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/state"
)

// zone is a fake of a DNS server.
type zone map[string]dnsRecord

type dnsRecord struct {
	Value string
	Added time.Time
}

// zoneScenario has a reconciler that adds a record for each Secret. The record has the value of the Secret.
func zoneScenario(reconcileRecord func(context.Context, Env, zone, *corev1.Secret) error) Scenario {
	const finalizer = "example.com/record"
	records := zone{}
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if secret.DeletionTimestamp != nil {
			if err := e.Call(ctx, "remove "+secret.Name, func() error { delete(records, secret.Name); return nil }); err != nil {
				return reconcile.Result{}, err
			}
			if controllerutil.RemoveFinalizer(secret, finalizer) {
				return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
			}
			return reconcile.Result{}, nil
		}
		if controllerutil.AddFinalizer(secret, finalizer) {
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}
		return reconcile.Result{}, reconcileRecord(ctx, e, records, secret)
	})
	s.Steps = Lifecycle(newSecret("a"), func(s *corev1.Secret) { s.Data = map[string][]byte{"value": []byte("2")} })
	s.Reset = func() { clear(records); records["ns"] = dnsRecord{Value: "1.2.3.4"} }
	s.Outside = func() any { return records }
	return s
}

// put adds or replaces a record.
func put(ctx context.Context, e Env, records zone, name string, value []byte) error {
	return e.Call(ctx, "put "+name, func() error {
		records[name] = dnsRecord{string(value), time.Now()}
		return nil
	})
}

func TestOutside(t *testing.T) {
	for name, c := range map[string]struct {
		reconcile func(context.Context, Env, zone, *corev1.Secret) error
		want      string
	}{
		"correct": {func(ctx context.Context, e Env, records zone, secret *corev1.Secret) error {
			if found, ok := records[secret.Name]; ok && found.Value == string(secret.Data["value"]) {
				return nil
			}
			return put(ctx, e, records, secret.Name, secret.Data["value"])
		}, ""},
		"done is written first": {func(ctx context.Context, e Env, records zone, secret *corev1.Secret) error {
			value := string(secret.Data["value"])
			if secret.Annotations["example.com/done"] == value {
				return nil
			}
			secret.Annotations = map[string]string{"example.com/done": value}
			if err := e.Client.Update(ctx, secret); err != nil {
				return err
			}
			return put(ctx, e, records, secret.Name, []byte(value))
		}, "O2 end state: outside a is missing"},
		"a second record remains": {func(ctx context.Context, e Env, records zone, secret *corev1.Secret) error {
			if _, ok := records[secret.Name]; ok {
				return nil
			}
			if err := put(ctx, e, records, secret.Name+"-txt", nil); err != nil {
				return err
			}
			return put(ctx, e, records, secret.Name, secret.Data["value"])
		}, "O5 deletion: outside a-txt is left over: its owner no longer exists"},
		"each reconcile writes": {func(ctx context.Context, e Env, records zone, secret *corev1.Secret) error {
			return put(ctx, e, records, secret.Name, secret.Data["value"])
		}, "O3 idempotence"},
	} {
		t.Run(name, func(t *testing.T) {
			report := mustCheck(t, zoneScenario(c.reconcile), DefaultOptions())
			got := ""
			if f := report.Failure; f != nil {
				got = string(f.Violation.Oracle) + ": " + strings.TrimPrefix(f.Violation.Message, string(f.Violation.Oracle)+": ")
			}
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q\n%v", got, c.want, report.Failure)
			}
		})
	}
}

// TestOutsideContent encodes what Outside returns.
func TestOutsideContent(t *testing.T) {
	for name, c := range map[string]struct {
		content any
		want    map[string]any
		failure bool
	}{
		"nothing":    {nil, nil, false},
		"a map":      {map[string]int{"a": 1}, map[string]any{"a": 1.0}, false},
		"a struct":   {struct{ A string }{"b"}, map[string]any{"A": "b"}, false},
		"a number":   {7, map[string]any{"": 7.0}, false},
		"a function": {func() {}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := state.OutsideOf(c.content)
			if (err != nil) != c.failure || !maps.Equal(got.Values, c.want) {
				t.Errorf("got %v, %v, want %v", got.Values, err, c.want)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRequestsWithoutAnEffect has reconcilers that make requests that change nothing.
func TestRequestsWithoutAnEffect(t *testing.T) {
	checked := false
	for name, c := range map[string]struct {
		// write is called with the child, which is as it should be.
		write func(ctx context.Context, e Env, child *corev1.ConfigMap) error
		// about is the field About of the violation, or empty if there is none.
		about string
		// message is the end of the message of the violation. Optional.
		message string
		// counted is set if the certificate counts writes.
		counted bool
	}{
		"an update": {func(ctx context.Context, e Env, child *corev1.ConfigMap) error {
			return e.Client.Update(ctx, child)
		}, "update ConfigMap default/a", "a request that changes nothing: update ConfigMap default/a", true},
		"a patch": {func(ctx context.Context, e Env, child *corev1.ConfigMap) error {
			return e.Client.Patch(ctx, child, client.MergeFrom(child.DeepCopy()))
		}, "patch ConfigMap default/a", "", true},
		"two requests": {
			func(ctx context.Context, e Env, child *corev1.ConfigMap) error {
				if err := e.Client.Update(ctx, child); err != nil {
					return err
				}
				return e.Client.Patch(ctx, child, client.MergeFrom(child.DeepCopy()))
			}, "patch ConfigMap default/a",
			"2 requests that change nothing: update ConfigMap default/a, patch ConfigMap default/a", true,
		},
		"an apply": {func(ctx context.Context, e Env, child *corev1.ConfigMap) error {
			owner := child.OwnerReferences[0]
			return e.Client.Apply(ctx, corev1apply.ConfigMap(child.Name, child.Namespace).WithData(child.Data).
				WithOwnerReferences(metav1apply.OwnerReference().WithAPIVersion(owner.APIVersion).WithKind(owner.Kind).
					WithName(owner.Name).WithUID(owner.UID).WithController(true).WithBlockOwnerDeletion(true)),
				client.FieldOwner("a"), client.ForceOwnership)
		}, "", "", true},
		"a dry run": {func(ctx context.Context, e Env, child *corev1.ConfigMap) error {
			return e.Client.Update(ctx, child, client.DryRunAll)
		}, "", "", true},
		"one update": {func(ctx context.Context, e Env, child *corev1.ConfigMap) error {
			if checked {
				return nil
			}
			err := e.Client.Update(ctx, child)
			checked = err == nil
			return err
		}, "", "", true},
		"nothing": {func(context.Context, Env, *corev1.ConfigMap) error { return nil }, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				child := configMapOf(secret, true)
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
				switch {
				case apierrs.IsNotFound(err):
					return reconcile.Result{}, e.Client.Create(ctx, configMapOf(secret, true))
				case err != nil:
					return reconcile.Result{}, err
				case !metav1.IsControlledBy(child, secret):
					return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), child.Name, nil)
				}
				return reconcile.Result{}, c.write(ctx, e, child)
			})
			s.Reset = func() { checked = false }
			s.Steps = Lifecycle(newSecret("a"))
			report := mustCheck(t, s, Options{Seed: 1})
			switch f := report.Failure; {
			case c.about == "" && f != nil:
				t.Errorf("a false alarm:\n%s", f)
			case c.about != "" && (f == nil || f.Violation.Cause != CauseNoOpWrite || f.Violation.About != c.about ||
				len(f.Faults) > 0):
				t.Errorf("got %v, want %s without an effect", f, c.about)
			case f != nil && (!strings.HasSuffix(f.Violation.Message, c.message) || f.Hint == ""):
				t.Errorf("got %s with the hint %q, want a hint and %q", f.Violation, f.Hint, c.message)
			}
			s.Off = map[Oracle]string{OracleIdempotence: "the requests are cheap"}
			if report = mustCheck(t, s, Options{Seed: 1}); report.Failure != nil {
				t.Fatalf("off: %v", report.Failure)
			}
			if got := strings.Contains(report.Certificate.String(), " without an effect"); got != c.counted {
				t.Errorf("writes are counted: %t, want %t: %s", got, c.counted, report.Certificate)
			}
		})
	}
}

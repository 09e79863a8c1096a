// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestPollingLongerThanUsual polls until an object is old enough. The write at the end is not redundant.
func TestPollingLongerThanUsual(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if secret.Labels["old"] != "" {
			return reconcile.Result{}, nil
		}
		if time.Since(secret.CreationTimestamp.Time) < 75*time.Second {
			return reconcile.Result{RequeueAfter: 5 * time.Second}, nil
		}
		secret.Labels = map[string]string{"old": "yes"}
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	})
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	s.Desired = func(state State) error {
		if secret := newSecret("a"); !state.Get(secret) || secret.Labels["old"] != "yes" {
			t.Errorf("settled with labels %v", secret.Labels)
		}
		return nil
	}
	converges(t, s, DefaultOptions())
}

// TestReconcilingAgainPassesPredicates counts reconciles in an object, and has a predicate that drops resyncs.
func TestReconcilingAgainPassesPredicates(t *testing.T) {
	s := Scenario{
		Scheme: secretScenario(nil).Scheme, For: &corev1.Secret{},
		Setup: func(mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(
				&corev1.Secret{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{}),
			).
				Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					secret := &corev1.Secret{}
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, secret); err != nil {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					wanted := configMapOf(secret, true)
					err := mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(wanted), wanted)
					if apierrs.IsNotFound(err) {
						return reconcile.Result{}, mgr.GetClient().Create(ctx, wanted)
					} else if err != nil {
						return reconcile.Result{}, err
					}
					wanted.Data["count"] += "1"
					return reconcile.Result{}, mgr.GetClient().Update(ctx, wanted)
				}))
		},
		Steps: Steps(Apply(newSecret("a")), Settle()),
	}
	if f := foundIn(t, s); f == nil || f.Violation.Oracle != OracleIdempotence || len(f.Faults) > 0 {
		t.Errorf("got %v, want a redundant write, without faults", f)
	}
}

// TestUsersMustWait has a scenario that fails if users do not wait, which the certificate reports.
func TestUsersMustWait(t *testing.T) {
	s := copierScenario(false)
	changed := newSecret("a")
	changed.Data["value"] = []byte("2")
	first := ""
	s.Reset = func() { first = "" }
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Do("look", func(ctx context.Context, c client.Client) error {
		found := &corev1.ConfigMapList{}
		err := c.List(ctx, found, client.InNamespace("default"))
		if len(found.Items) > 0 {
			first = found.Items[0].Data["value"]
		}
		return err
	}), Apply(changed), Settle())
	s.Desired = func(State) error {
		if first == "2" {
			return context.Canceled
		}
		return nil
	}
	s.Steps = append(s.Steps, Do("must have been there", func(context.Context, client.Client) error {
		if first == "" {
			return context.DeadlineExceeded
		}
		return nil
	}), Settle())
	p := mustPlan(t, s)
	report := p.check(t, Options{Seed: 1})
	if report.Failure != nil {
		t.Fatal(report.Failure)
	}
	want := "users always wait at step 2, settle: otherwise the run without faults fails: scenario: step must have " +
		"been there: context deadline exceeded"
	if left := report.Certificate.LeftOut; len(left) != 1 || left[0] != want {
		t.Errorf("LeftOut is %q, want %q", left, want)
	}
	if got := report.Certificate.String(); !strings.HasPrefix(
		got, "converges under every single fault, except for what is left out: ",
	) {
		t.Errorf("the certificate says %s", got)
	}
}

// TestRenewals replaces old tokens: work that is due in hours or months is not awaited.
func TestRenewals(t *testing.T) {
	for _, lifetime := range []time.Duration{time.Hour, 20 * time.Hour, 24 * time.Hour, 60 * 24 * time.Hour} {
		t.Run(lifetime.String(), func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				token := configMapOf(secret, true)
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(token), token)
				made, _ := time.Parse(time.RFC3339, token.Annotations["made"])
				switch left := time.Until(made.Add(lifetime)); {
				case apierrs.IsNotFound(err):
					token = configMapOf(secret, true)
					metav1.SetMetaDataAnnotation(&token.ObjectMeta, "made", time.Now().Format(time.RFC3339))
					return reconcile.Result{RequeueAfter: lifetime}, e.Client.Create(ctx, token)
				case err != nil:
					return reconcile.Result{}, err
				case !metav1.IsControlledBy(token, secret):
					return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), token.Name, nil)
				case left > 0:
					return reconcile.Result{RequeueAfter: left}, nil
				}
				metav1.SetMetaDataAnnotation(&token.ObjectMeta, "made", time.Now().Format(time.RFC3339))
				return reconcile.Result{RequeueAfter: lifetime}, e.Client.Update(ctx, token)
			})
			s.Steps = Steps(Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle())
			converges(t, s, DefaultOptions())
		})
	}
}

// TestPollsThatIgnoreErrors converge: an ignored error is not a failure.
func TestPollsThatIgnoreErrors(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if _, err := e.Cloud.Get(ctx, "nothing"); err != nil && !errors.Is(err, ErrAbsent) {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: time.Minute}, client.IgnoreAlreadyExists(
			e.Client.Create(ctx, configMapOf(secret, true)),
		)
	})
	s.Without = map[Fault]string{FaultTaken: "any object of the name will do"}
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	converges(t, s, Options{Seed: 1})
}

// TestRenewalsOfTwo renews the tokens of two objects at about the same time.
func TestRenewalsOfTwo(t *testing.T) {
	for _, lifetime := range []time.Duration{30 * time.Minute, 31 * time.Minute, time.Hour} {
		s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			value, err := e.Cloud.Get(ctx, secret.Name)
			if err != nil && !errors.Is(err, ErrAbsent) {
				return reconcile.Result{}, err
			}
			made, _ := time.Parse(time.RFC3339, value)
			if left := time.Until(made.Add(lifetime)); left > 0 {
				return reconcile.Result{RequeueAfter: left}, nil
			}
			return reconcile.Result{RequeueAfter: lifetime}, e.Cloud.Put(ctx, secret.Name, time.Now().Format(time.RFC3339))
		})
		s.Steps = Steps(Apply(newSecret("a")), Apply(newSecret("b")), Settle())
		s.Off = map[Oracle]string{OracleDeletion: "what is outside stays"}
		report := converges(t, s, Options{Seed: 1})
		if report.Certificate.Points > 60 {
			t.Errorf("%s: %d points: renewed too often during a Settle", lifetime, report.Certificate.Points)
		}
	}
}

// TestPollsThatMayBeHot checks the state of a hot loop if the oracle is off.
func TestPollsThatMayBeHot(t *testing.T) {
	s := secretScenario(func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: 5 * time.Millisecond}, nil
	})
	s.Off = map[Oracle]string{OracleQuiescence: "it looks all the time"}
	s.Desired = func(State) error { return errors.New("never right") }
	report := mustCheck(t, s, Options{Seed: 1})
	if f := report.Failure; f == nil || f.Violation.Oracle != OracleEndState {
		t.Errorf("got %v, want that the state is checked", f)
	}
}

// TestRevertedChanges has a stale cache show an intermediate state: its consequences are not a violation.
func TestRevertedChanges(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		found := &corev1.ConfigMapList{}
		if err := e.APIReader.List(ctx, found, client.InNamespace(secret.Namespace)); err != nil {
			return reconcile.Result{}, err
		}
		wanted := configMapOf(secret, true)
		wanted.Name += "-" + string(secret.Data["value"])
		there := false
		for _, configMap := range found.Items {
			switch {
			case !metav1.IsControlledBy(&configMap, secret):
			case configMap.Name == wanted.Name:
				there = true
			default:
				if err := client.IgnoreNotFound(e.Client.Delete(ctx, &configMap)); err != nil {
					return reconcile.Result{}, err
				}
			}
		}
		if there {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, e.Client.Create(ctx, wanted)
	})
	changed := newSecret("a")
	changed.Data["value"] = []byte("2")
	s.Steps = Steps(Apply(newSecret("a")), Apply(changed), Settle())
	converges(t, s, Options{Seed: 1})
}

// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func zzrun(t *testing.T, s Scenario) {
	t.Helper()
	report, err := Check(t, s, Options{Seed: 1})
	if err != nil || report.Failure != nil {
		t.Error(report.Failure, err)
	}
	t.Log(report.Certificate.String(), report.Certificate.LeftOut)
}

func zzrenew(lifetime time.Duration) Scenario {
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
	return s
}

func TestZZTwoRenewers(t *testing.T) {
	s := zzrenew(time.Hour)
	s.Steps = Steps(Apply(newSecret("a")), Apply(newSecret("b")), Settle(), Delete(newSecret("a")), Delete(newSecret("b")), Settle())
	zzrun(t, s)
}

func TestZZRenew30(t *testing.T) { zzrun(t, zzrenew(30*time.Minute)) }
func TestZZRenew31(t *testing.T) { zzrun(t, zzrenew(31*time.Minute)) }

func TestZZCreateIgnorePoll(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if err := e.Client.Create(ctx, configMapOf(secret, true)); err != nil && !apierrs.IsAlreadyExists(err) {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: time.Minute}, nil
	})
	s.Without = map[Fault]string{Taken: "x", Conflict: "x"}
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle())
	zzrun(t, s)
}

func TestZZCloudAbsentPoll(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if _, err := e.Cloud.Get(ctx, "x"); err != nil && !errors.Is(err, ErrAbsent) {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: time.Minute}, nil
	})
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle())
	zzrun(t, s)
}

func TestZZMapperSleeps(t *testing.T) {
	s := copierScenario(false)
	s.Owns = nil
	s.Watches = []Watch{{&corev1.ConfigMap{}, func(ctx context.Context, obj client.Object) []reconcile.Request {
		time.Sleep(10 * time.Millisecond) // as retry.OnError does
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}}}
	s.Given = []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}, newSecret("a")}
	s.Steps = nil
	zzrun(t, s)
}

func TestZZLagIntermediate(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		want := string(secret.Data["value"])
		keys, err := e.Cloud.List(ctx, "")
		if err != nil {
			return reconcile.Result{}, err
		}
		there := false
		for _, k := range keys {
			if k == want {
				there = true
			} else if err := e.Cloud.Delete(ctx, k); err != nil {
				return reconcile.Result{}, err
			}
		}
		if !there {
			return reconcile.Result{}, e.Cloud.Create(ctx, want, "")
		}
		return reconcile.Result{}, nil
	})
	changed := newSecret("a")
	changed.Data["value"] = []byte("2")
	s.Off = map[Oracle]string{Deletion: "x"}
	s.Steps = Steps(Apply(newSecret("a")), Update(changed), Settle())
	zzrun(t, s)
}

func TestZZForeignFinalizer(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if err := e.Cloud.Put(ctx, "shared", "x"); err != nil {
			return reconcile.Result{}, err
		}
		if secret.Labels["v"] != string(secret.Data["value"]) {
			secret.Labels = map[string]string{"v": string(secret.Data["value"])}
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}
		return reconcile.Result{}, nil
	})
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Change(newSecret("a"), func(s *corev1.Secret) {
		s.Finalizers = []string{"example.com/somebody"}
		s.Data["value"] = []byte("2")
	}), Settle())
	zzrun(t, s)
}

func TestZZHotOff(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: 5 * time.Millisecond}, nil
	})
	s.Off = map[Oracle]string{Quiescence: "it looks all the time on purpose"}
	n := 0
	s.Desired = func(State) error { n++; return errors.New("wrong") }
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	zzrun(t, s)
	t.Log("desired called", n)
}

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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type secretReconciler func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error)

// ensure creates the config map of a secret, if the cache does not have it.
func ensure(ctx context.Context, e Env, configMap *corev1.ConfigMap) error {
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{})
	if apierrs.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(e.Client.Create(ctx, configMap))
	}
	return err
}

const kept = "example.com/kept"

// cleaned adds a finalizer, puts a value into the cloud, and lets cleanup remove both.
func cleaned(cleanup secretReconciler) secretReconciler {
	return func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		switch {
		case secret.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(secret, kept):
			return cleanup(ctx, e, secret)
		case secret.DeletionTimestamp != nil:
			return reconcile.Result{}, nil
		case controllerutil.AddFinalizer(secret, kept):
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}
		return reconcile.Result{}, e.Cloud.Put(ctx, secret.Name, "exists")
	}
}

func removeFinalizer(ctx context.Context, e Env, secret *corev1.Secret) error {
	controllerutil.RemoveFinalizer(secret, kept)
	return client.IgnoreNotFound(e.Client.Update(ctx, secret))
}

// lookAlikes are reconcilers in pairs and groups whose failures resemble each other, with different mistakes.
var lookAlikes = []struct {
	name      string
	reconcile secretReconciler
	change    func(*Scenario)
	// want is a part of the hint, or empty for no hint.
	want string
}{
	{"an error is swallowed", func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		_ = ensure(ctx, e, configMapOf(secret, true))
		return reconcile.Result{}, nil
	}, onlyCreated, "an error is swallowed"},
	{"an error is returned, and the write is not repeated", nil, func(s *Scenario) {
		onlyCreated(s)
		s.Without[FaultChildDeleted] = "for this test"
		s.New = func(e Env) reconcile.Reconciler {
			done := map[string]bool{}
			return secretFunc(e, func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				if done[secret.Name] {
					return reconcile.Result{}, nil
				}
				done[secret.Name] = true
				return reconcile.Result{}, ensure(ctx, e, configMapOf(secret, true))
			})
		}
	}, "although its error was returned"},
	{"an error is returned, and recorded forever", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		err := ensure(ctx, e, configMapOf(secret, true))
		if err != nil && secret.Labels["failed"] == "" {
			secret.Labels = map[string]string{"failed": "yes"}
			return reconcile.Result{}, errors.Join(err, e.Client.Update(ctx, secret))
		}
		return reconcile.Result{}, err
	}, onlyCreated, "wrote because of the error remains"},
	{"created twice: the first is not in the cache", nil, func(s *Scenario) {
		*s = copierScenario(true)
	}, "an earlier creation was not visible"},
	{"created twice: the response is lost", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if secret.Annotations["made"] != "" {
			return reconcile.Result{}, nil
		}
		configMap := configMapOf(secret, true)
		configMap.Name, configMap.GenerateName = "", "a-"
		if err := e.Client.Create(ctx, configMap); err != nil {
			return reconcile.Result{}, err
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "made", configMap.Name)
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	}, onlyCreated, "the response to an earlier creation was lost"},
	{"created once, but deleted because of an error", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		configMap := configMapOf(secret, true)
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{})
		if apierrs.IsNotFound(err) {
			if err = e.Client.Create(ctx, configMap); err != nil && e.Client.Delete(ctx, configMap) == nil {
				err = e.Client.Create(ctx, configMapOf(secret, true))
			}
		}
		return reconcile.Result{}, err
	}, nil, "a creation that failed had taken effect"},
	{"a finalizer stays: there is no cleanup", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if secret.DeletionTimestamp == nil && controllerutil.AddFinalizer(secret, kept) {
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}
		return reconcile.Result{}, nil
	}, nil, "do not change anything"},
	{"a finalizer stays: the cleanup swallows an error", cleaned(func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if err := e.Cloud.Delete(ctx, secret.Name); err != nil && !errors.Is(err, ErrAbsent) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, removeFinalizer(ctx, e, secret)
	}), nil, "because the cleanup swallows an error"},
	{"a finalizer stays: no event", nil, func(s *Scenario) {
		s.New, s.Owns = nil, nil
		s.Setup = func(mgr ctrl.Manager) error {
			e := EnvOf(mgr)
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}, builder.WithPredicates(predicate.Funcs{
				UpdateFunc: func(event.UpdateEvent) bool { return false },
			})).Complete(secretFunc(e, func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				if secret.DeletionTimestamp != nil {
					return reconcile.Result{}, removeFinalizer(ctx, e, secret)
				}
				if controllerutil.AddFinalizer(secret, kept) {
					return reconcile.Result{}, e.Client.Update(ctx, secret)
				}
				return reconcile.Result{}, nil
			}))
		}
	}, "does a predicate drop the update"},
	{"a finalizer stays: the cleanup fails forever", cleaned(func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if err := e.Cloud.Delete(ctx, secret.Name); err != nil {
			return reconcile.Result{}, err // also if it does not exist
		}
		return reconcile.Result{}, removeFinalizer(ctx, e, secret)
	}), nil, "each reconcile fails"},
	{"left over: no owner", func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{}, ensure(ctx, e, configMapOf(secret, false))
	}, nil, "set an owner reference"},
	{"left over: outside of the cluster", cleaned(func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		return reconcile.Result{}, removeFinalizer(ctx, e, secret)
	}), nil, "delete it before removing the finalizer"},
	{"missing: another client has deleted it", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if secret.Annotations["made"] != "" {
			return reconcile.Result{}, nil
		}
		if err := ensure(ctx, e, configMapOf(secret, true)); err != nil {
			return reconcile.Result{}, err
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "made", "yes")
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	}, onlyCreated, "is not recreated"},
	{"missing: a crash between two writes", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		first, second := configMapOf(secret, true), configMapOf(secret, true)
		second.Name = "second"
		err := e.Client.Create(ctx, first)
		if apierrs.IsAlreadyExists(err) {
			return reconcile.Result{}, nil
		}
		if err == nil {
			err = client.IgnoreAlreadyExists(e.Client.Create(ctx, second))
		}
		return reconcile.Result{}, err
	}, func(s *Scenario) {
		onlyCreated(s)
		s.Without[FaultTimeoutApplied], s.Without[FaultTimeoutLost] = "for this test", "for this test"
		s.Without[FaultServerError], s.Without[FaultTooManyRequests] = "for this test", "for this test"
		s.Without[FaultChildDeleted] = "for this test"
	}, "after the crash is not done"},
	{"a loop: a conflict forever", nil, func(s *Scenario) {
		onlyCreated(s)
		s.New = func(e Env) reconcile.Reconciler {
			remembered := map[string]*corev1.Secret{}
			return secretFunc(e, func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				if secret.Labels["seen"] != "" {
					return reconcile.Result{}, nil
				}
				if remembered[secret.Name] == nil {
					remembered[secret.Name] = secret.DeepCopy()
				}
				changed := remembered[secret.Name].DeepCopy()
				changed.Labels = map[string]string{"seen": "yes"}
				return reconcile.Result{}, e.Client.Update(ctx, changed)
			})
		}
	}, "after a conflict"},
	{"a loop: a write each time", func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "seen", secret.ResourceVersion)
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	}, nil, "each reconcile changes an object"},
	{"a loop: an object each time", func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		configMap := configMapOf(secret, true)
		configMap.Name, configMap.GenerateName = "", "a-"
		return reconcile.Result{}, e.Client.Create(ctx, configMap)
	}, nil, "each reconcile creates an object"},
	{"a loop: another controller writes, too", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if secret.Labels["mode"] == "mine" {
			return reconcile.Result{}, nil
		}
		secret.Labels = map[string]string{"mode": "mine"}
		return reconcile.Result{}, e.Client.Update(ctx, secret)
	}, func(s *Scenario) {
		s.World = []Actor{{Name: "rival", For: &corev1.Secret{}, Act: func(
			ctx context.Context, c client.Client, obj client.Object,
		) error {
			if obj.GetLabels()["mode"] != "mine" {
				return nil
			}
			obj.SetLabels(map[string]string{"mode": "other"})
			return c.Update(ctx, obj)
		}}}
	}, "let one writer decide about the field"},
	{"a loop: the owner does not exist", func(
		ctx context.Context, e Env, secret *corev1.Secret,
	) (reconcile.Result, error) {
		configMap := configMapOf(secret, true)
		configMap.OwnerReferences[0].UID = "another"
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{})
		if apierrs.IsNotFound(err) {
			err = e.Client.Create(ctx, configMap)
		}
		return reconcile.Result{RequeueAfter: time.Second}, err
	}, nil, "the garbage collector deletes the object after each creation"},
	{"a loop: new work each minute", nil, func(s *Scenario) {
		*s = cronScenario(true)
		s.Steps = Steps(Apply(newSecret("a")), Settle())
	}, "new work is due whenever time passes"},
	{"a loop: a request each time", func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}, nil, "do not request another reconcile"},
	{"a loop: it does not return", func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		time.Sleep(48 * time.Hour)
		return reconcile.Result{}, nil
	}, nil, "must not wait"},
	{"a panic: an empty field", func(_ context.Context, _ Env, secret *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: time.Duration(*secret.DeletionGracePeriodSeconds)}, nil
	}, nil, "fields that may be empty"},
	{"a panic: a deliberate one", func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
		panic("not implemented")
	}, nil, ""},
	{"a write again: a change", func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		configMap := configMapOf(secret, true)
		_, err := controllerutil.CreateOrUpdate(ctx, e.Client, configMap, func() error {
			configMap.Data = map[string]string{"time": time.Now().Truncate(time.Minute).Format(time.RFC3339)}
			return nil
		})
		return reconcile.Result{}, err
	}, nil, "compare before writing"},
}

// onlyCreated leaves out the steps that change and delete the secret, and the faults of names.
func onlyCreated(s *Scenario) {
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	s.Without = map[Fault]string{FaultTaken: "the names are not checked", FaultExists: "the content is not checked"}
}

// secretFunc reconciles secrets.
func secretFunc(e Env, do secretReconciler) reconcile.Reconciler {
	return secretScenario(do).New(e)
}

// TestHint_lookAlikes checks that failures that resemble each other have the hint of their mistake, or none.
func TestHint_lookAlikes(t *testing.T) {
	for _, c := range lookAlikes {
		t.Run(c.name, func(t *testing.T) {
			s := secretScenario(c.reconcile)
			if c.change != nil {
				c.change(&s)
			}
			report := mustCheck(t, s, DefaultOptions())
			f := report.Failure
			switch {
			case f == nil:
				t.Fatalf("no failure: %s", report.Certificate)
			case c.want == "" && f.Hint != "" || !strings.Contains(f.Hint, c.want):
				t.Errorf("the hint is %q, want … %s …\n%s", f.Hint, c.want, f)
			}
			checkLines(t, f)
		})
	}
}

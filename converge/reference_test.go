// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
)

// createOnce creates an object unless one of its name exists, which must have the same controller.
func createOnce(ctx context.Context, e Env, obj *corev1.ConfigMap) error {
	found := &corev1.ConfigMap{}
	err := e.Client.Get(ctx, client.ObjectKeyFromObject(obj), found)
	switch {
	case apierrs.IsNotFound(err):
		return e.Client.Create(ctx, obj)
	case err == nil && !reflect.DeepEqual(metav1.GetControllerOf(found), metav1.GetControllerOf(obj)):
		return apierrs.NewConflict(corev1.Resource("configmaps"), obj.Name, nil)
	}
	return err
}

// TestFieldsThatDependOnChance has a field whose value is often the same in the first two runs without faults.
func TestFieldsThatDependOnChance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for name, value := range map[string]func() string{
		"a random value": func() string { return fmt.Sprint(random.IntN(4) == 0) },
		"a time":         func() string { return fmt.Sprint(time.Now().UnixMilli()%10 < 5) },
	} {
		for _, wrong := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", wrong: ", wrong), func(t *testing.T) {
				s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
					configMap := configMapOf(secret, true)
					configMap.Data["chance"] = value()
					err := createOnce(ctx, e, configMap)
					if wrong && apierrs.IsTimeout(err) {
						other := configMapOf(secret, true)
						other.Name, other.Data["chance"] = "other", value()
						return reconcile.Result{}, createOnce(ctx, e, other)
					}
					return reconcile.Result{}, err
				})
				s.Steps = Lifecycle(newSecret("a"))
				report := mustCheck(t, s, Options{Seed: 1})
				switch f := report.Failure; {
				case !wrong && f != nil:
					t.Errorf("a false alarm:\n%s", f)
				case wrong && (f == nil || f.Violation.About != "ConfigMap default/other"):
					t.Errorf("got %v, want an object that should not exist", f)
				}
			})
		}
	}
}

// TestNamesThatDependOnChance has no reference to compare with, which the failure must say.
func TestNamesThatDependOnChance(t *testing.T) {
	for name, suffix := range map[string]func() any{
		"a random number": func() any { return rand.Int() },
		"a time":          func() any { return time.Now().UnixNano() },
	} {
		t.Run(name, func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				found := &corev1.ConfigMapList{}
				if err := e.APIReader.List(ctx, found, client.InNamespace(secret.Namespace)); err != nil || len(found.Items) > 0 {
					return reconcile.Result{}, err
				}
				configMap := configMapOf(secret, true)
				configMap.Name = fmt.Sprint("a-", suffix())
				return reconcile.Result{}, e.Client.Create(ctx, configMap)
			})
			s.Steps = Lifecycle(newSecret("a"))
			report := mustCheck(t, s, Options{Seed: 1})
			f := report.Failure
			if f == nil || f.Violation.Cause != CauseScenario ||
				!strings.HasPrefix(f.Violation.Message, "of two runs without faults, only one has ConfigMap default/a-") {
				t.Fatalf("got %v, want that the names depend on chance", f)
			}
		})
	}
}

// TestSeveralOvertakenSteps records each value that it has seen. Users may change it twice before it sees any.
func TestSeveralOvertakenSteps(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		t.Run(fmt.Sprint("wrong: ", wrong), func(t *testing.T) {
			p, reference := referred(t, historyScenario(wrong))
			overtaken, failures := 0, 0
			for _, first := range reference.Points {
				if !first.Faults.Has(FaultMeanwhile) {
					continue
				}
				once := inject.Schedule{{Point: first.Point, Fault: FaultMeanwhile}}
				o := p.try(t, once, nil)
				if v, failed := o.First(); failed {
					t.Fatalf("%s fails: %s", once, v)
				}
				for _, second := range o.Points {
					twice := once.With(inject.Deviation{Point: second.Point, Fault: FaultMeanwhile})
					if !second.Faults.Has(FaultMeanwhile) || len(twice) < 2 {
						continue
					}
					o := p.try(t, twice, nil)
					v, failed := o.First()
					if len(o.Skipped) == 2 {
						overtaken++
					}
					if failed {
						failures++
					}
					if failed && !wrong {
						t.Fatalf("%s skips %v: %s", twice, o.Skipped, v)
					}
				}
			}
			if overtaken == 0 {
				t.Error("no schedule has skipped two Settles")
			}
			if wrong && failures == 0 {
				t.Error("no failure was found")
			}
		})
	}
}

// historyScenario copies a value, and keeps the previous ones. If wrong is set, it ignores the last change if users
// made it before the first value was copied.
func historyScenario(wrong bool) Scenario {
	ignored := false
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		value := string(secret.Data["value"])
		found := configMapOf(secret, true)
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
		switch {
		case apierrs.IsNotFound(err):
			live := newSecret(secret.Name)
			if err := e.APIReader.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
				return reconcile.Result{}, err
			}
			ignored = wrong && value == "1" && string(live.Data["value"]) == "3"
			return reconcile.Result{}, e.Client.Create(ctx, configMapOf(secret, true))
		case err != nil || strings.HasSuffix(found.Data["value"], value) || ignored:
			return reconcile.Result{}, err
		case !metav1.IsControlledBy(found, secret):
			return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), found.Name, nil)
		}
		found.Data["value"] += value
		return reconcile.Result{}, e.Client.Update(ctx, found)
	})
	s.Reset = func() { ignored = false }
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	for _, value := range []string{"2", "3"} {
		change := func(s *corev1.Secret) { s.Data["value"] = []byte(value) }
		s.Steps = append(s.Steps, Change(newSecret("a"), change), Settle())
	}
	return s
}

// TestOrderOfGarbageCollection recreates an owner, which makes its old child garbage. The reconciler deletes it unless
// the garbage collector was faster.
func TestOrderOfGarbageCollection(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		t.Run(fmt.Sprint("wrong: ", wrong), func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				child := configMapOf(secret, true)
				err := e.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
				switch {
				case apierrs.IsNotFound(err):
					err = e.Client.Create(ctx, configMapOf(secret, true))
					if wrong && apierrs.IsTimeout(err) { // it may exist now
						err = client.IgnoreNotFound(e.Client.Delete(ctx, configMapOf(secret, true)))
					}
					return reconcile.Result{Requeue: true}, err //nolint:staticcheck // reconcilers still ask for it
				case err != nil || metav1.IsControlledBy(child, secret):
					return reconcile.Result{}, err
				case metav1.GetControllerOf(child).Kind != "Secret":
					return reconcile.Result{}, apierrs.NewConflict(corev1.Resource("configmaps"), child.Name, nil)
				}
				return reconcile.Result{Requeue: true}, client.IgnoreNotFound( //nolint:staticcheck // see above
					e.Client.Delete(ctx, child, client.Preconditions{UID: &child.UID}),
				)
			})
			s.Steps = Steps(Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Apply(newSecret("a")), Settle())
			report := mustCheck(t, s, Options{Seed: 1})
			switch f := report.Failure; {
			case !wrong && f != nil:
				t.Errorf("a false alarm:\n%s", f)
			case wrong && (f == nil || f.Violation.Oracle != OracleDuplicates):
				t.Errorf("got %v, want that too many are created", f)
			}
		})
	}
}

// TestDeletedBeforeTheNextStep copies a value from a source. If the source no longer exists, the copy stays as it is.
// Another client deletes the copy, and users delete the source before the controller has restored the copy: nothing can
// restore it then. If wrong is set, the copy is restored with another value.
func TestDeletedBeforeTheNextStep(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		t.Run(fmt.Sprint("wrong: ", wrong), func(t *testing.T) {
			p := mustPlan(t, sourceScenario(wrong))
			reference, ok := p.refer(t)
			if !ok {
				t.Fatal(reference.Violations)
			}
			var failures []string
			lost := 0
			for _, first := range reference.Points {
				if !first.Faults.Has(FaultChildDeleted) {
					continue
				}
				once := inject.Schedule{{Point: first.Point, Fault: FaultChildDeleted}}
				o := p.try(t, once, nil)
				for _, second := range o.Points {
					if !second.Faults.Has(FaultMeanwhile) {
						continue
					}
					twice := once.With(inject.Deviation{Point: second.Point, Fault: FaultMeanwhile})
					o := p.try(t, twice, nil)
					if v, failed := o.First(); failed {
						failures = append(failures, fmt.Sprintf("%s: %s", twice, v))
					}
					if last := o.At(len(p.Steps) - 1); len(o.Skipped) > 0 && p.reader().Flatten(last)["ConfigMap default/a"] == nil {
						lost++
					}
				}
			}
			if !wrong && (len(failures) > 0 || lost == 0) {
				t.Errorf("the copy is lost %d times; false alarms:\n%s", lost, strings.Join(failures, "\n"))
			}
			if wrong && len(failures) == 0 {
				t.Error("no failure was found")
			}
		})
	}
}

// sourceScenario copies the value of a ConfigMap of the users.
func sourceScenario(wrong bool) Scenario {
	source := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "source"}, Data: map[string]string{"value": "1"},
	}
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		found, existing := source.DeepCopy(), configMapOf(secret, true)
		if err := e.APIReader.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(existing), existing)
		if !apierrs.IsNotFound(err) {
			return reconcile.Result{}, err
		}
		child := configMapOf(secret, true)
		if child.Data = found.Data; wrong && secret.Labels["made"] != "" {
			child.Data = map[string]string{"value": "again"}
		}
		return reconcile.Result{}, e.Client.Create(ctx, child)
	})
	s.Steps = Steps(
		Apply(source), Apply(newSecret("a")), Settle(),
		Change(newSecret("a"), func(s *corev1.Secret) { s.Labels = map[string]string{"made": "yes"} }), Settle(),
		Delete(source), Settle(),
	)
	s.Except = []Exception{{
		Fault: FaultChildDeleted, Object: &corev1.ConfigMap{}, Step: len(s.Steps), Reason: "the source no longer exists",
	}}
	return s
}

// TestCreatorsThatFail creates an object with a generated name for each value, and deletes the ones before. The
// reconcile that creates one fails until an actor has completed the object. Without faults, that is each time. If the
// actor is early, it is not. In both cases three objects are deleted.
func TestCreatorsThatFail(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		value, all := string(secret.Data["value"]), &corev1.ConfigMapList{}
		if err := e.APIReader.List(ctx, all, client.InNamespace(secret.Namespace)); err != nil {
			return reconcile.Result{}, err
		}
		var child *corev1.ConfigMap
		for i := range all.Items {
			switch found := &all.Items[i]; {
			case !metav1.IsControlledBy(found, secret):
			case found.Data["value"] == value:
				child = found
			default:
				if err := client.IgnoreNotFound(e.Client.Delete(ctx, found)); err != nil {
					return reconcile.Result{}, err
				}
			}
		}
		if child == nil {
			child = configMapOf(secret, true)
			child.Name, child.GenerateName = "", "a-"
			if err := e.Client.Create(ctx, child); err != nil {
				return reconcile.Result{}, err
			}
			if err := e.APIReader.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
				return reconcile.Result{}, err
			}
		}
		if child.Labels["complete"] == "" {
			return reconcile.Result{}, fmt.Errorf("%s is not complete", child.Name)
		}
		return reconcile.Result{}, nil
	})
	s.World = []Actor{{Name: "completer", For: &corev1.ConfigMap{}, Act: func(
		ctx context.Context, c client.Client, obj client.Object,
	) error {
		if obj.GetLabels()["complete"] != "" {
			return nil
		}
		obj.SetLabels(map[string]string{"complete": "yes"})
		return c.Update(ctx, obj)
	}}}
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	for _, value := range []string{"2", "3", "4"} {
		change := func(s *corev1.Secret) { s.Data["value"] = []byte(value) }
		s.Steps = append(s.Steps, Change(newSecret("a"), change), Settle())
	}
	p := mustPlan(t, s)
	reference, ok := p.refer(t)
	if !ok {
		t.Fatal(reference.Violations)
	}
	tried := 0
	for _, m := range reference.Points {
		if !m.Faults.Has(FaultEarly) {
			continue
		}
		tried++
		early := inject.Schedule{{Point: m.Point, Fault: FaultEarly}}
		o := p.try(t, early, nil)
		if v, failed := o.First(); failed {
			t.Errorf("%s: %s", early, v)
		}
	}
	if tried == 0 {
		t.Error("no point for early")
	}
}

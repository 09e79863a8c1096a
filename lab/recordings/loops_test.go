// SPDX-License-Identifier: Apache-2.0

package recordings

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
	"trueup.dev/lab/corpus"
	"trueup.dev/observe/recorder"
)

// TestIsItLooping_plainReconcilersInACluster runs plain reconcilers that loop in a sandbox, and the same ones without
// the mistake. Only the first are reported.
func TestIsItLooping_plainReconcilersInACluster(t *testing.T) {
	type pair struct {
		buggy, correct converge.Scenario
		// want matches what is repeated.
		want string
	}
	pairs := map[string]pair{
		"random content": {
			copied(func(*corev1.ConfigMap, string) string { return rand.Text() }, nil),
			copied(func(c *corev1.ConfigMap, _ string) string { return orElse(c.Data["value"], rand.Text()) }, nil),
			`updates ConfigMap load-\w+-\d/web: data\[value\]`,
		},
		"the current time": {
			copied(func(*corev1.ConfigMap, string) string { return time.Now().Format(time.RFC3339Nano) }, nil),
			copied(func(_ *corev1.ConfigMap, created string) string { return created }, nil),
			`data\[value\] \(the current time in each of the last \d+ writes\)`,
		},
		"a fight with another controller": {
			copied(func(*corev1.ConfigMap, string) string { return "ours" }, fighter("value")),
			copied(func(*corev1.ConfigMap, string) string { return "ours" }, fighter("other")),
			`data\[value\] of ConfigMap load-\w+-\d/web changed back and forth 5 times in \w+: ` +
				`".*" \(Update\) writes a string of 4 bytes .*, "fighter" \(Update\) writes`,
		},
	}
	for name, want := range map[string]string{
		"c09-version-in-status":  `updates status of Widget load-\w+-\d/a: status.conditions`,
		"c09-comes-back-at-once": `returns RequeueAfter 1ms`,
		"c09-fights-autoscaler": `spec.replicas of Deployment load-\w+-\d/a changed back and forth 5 times in \w+: ` +
			`.*, "autoscaler" \(Update\) writes a number`,
	} {
		e := entry(t, name)
		pairs[name] = pair{e.Buggy(), e.Correct(), want}
	}
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := runLoad(t, p.buggy, 2, loopPatience).activity.found()
			t.Logf("%q", found)
			if want := regexp.MustCompile(p.want); !slices.ContainsFunc(found, want.MatchString) {
				t.Errorf("loops %q, want a match of %s", found, want)
			}
			if found := runLoad(t, p.correct, 2, loopPatience).activity.found(); len(found) > 0 {
				t.Errorf("false alarms: %q", found)
			}
		})
	}
}

// TestIsItLooping_notInADayOfNormalLife runs the correct reconcilers of the corpus in memory: their users, and a day
// without any.
func TestIsItLooping_notInADayOfNormalLife(t *testing.T) {
	ran := 0
	for _, e := range corpus.All() {
		loops := newActivity()
		s, ok := Observed(e.Correct(), func(*recorder.Recorder) {}, loops)
		if !ok {
			continue
		}
		ran++
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			if len(s.Steps) > 0 {
				s.Steps = append([]converge.Step{s.Steps[0], converge.Sleep(24 * time.Hour)}, s.Steps[1:]...)
			} else {
				s.Steps = converge.Steps(converge.Sleep(24*time.Hour), converge.Settle())
			}
			s.Desired = nil
			o := converge.DefaultOptions()
			o.SingleRequests, o.Pairs, o.Recoveries = 1, 0, 0 // few faults: this is normal life
			if _, err := converge.Check(t, s, o); err != nil {
				t.Fatal(err)
			}
			if found := loops.found(); len(found) > 0 {
				t.Errorf("false alarms: %q", found)
			}
		})
	}
	if ran < 80 {
		t.Errorf("%d reconcilers, want at least 80", ran)
	}
}

func entry(t *testing.T, name string) corpus.Entry {
	t.Helper()
	all := corpus.All()
	i := slices.IndexFunc(all, func(e corpus.Entry) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("the corpus does not have %s", name)
	}
	return all[i]
}

// copied is a Service with a ConfigMap that has a value, and other controllers.
func copied(value func(old *corev1.ConfigMap, created string) string, world []converge.Actor) converge.Scenario {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	change := func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }
	return converge.Scenario{
		Scheme: corpus.All()[0].Correct().Scheme, For: &corev1.Service{}, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: converge.Lifecycle(service, change), World: world,
		New: func(env converge.Env) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				service := &corev1.Service{}
				if err := env.Client.Get(ctx, req.NamespacedName, service); err != nil || service.DeletionTimestamp != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
				_, err := controllerutil.CreateOrUpdate(ctx, env.Client, config, func() error {
					if config.Data == nil {
						config.Data = map[string]string{}
					}
					config.Data["value"] = value(config, service.CreationTimestamp.String())
					return controllerutil.SetControllerReference(service, config, env.Scheme)
				})
				return reconcile.Result{}, err
			})
		},
	}
}

// fighter is another controller that wants its value in a key of each ConfigMap.
func fighter(key string) []converge.Actor {
	return []converge.Actor{{
		Name: "fighter", For: &corev1.ConfigMap{},
		Act: func(ctx context.Context, c client.Client, obj client.Object) error {
			if obj.(*corev1.ConfigMap).Data[key] == "theirs" || obj.GetName() != "web" {
				return nil
			}
			patch, err := json.Marshal(map[string]any{"data": map[string]string{key: "theirs"}})
			if err != nil {
				return fmt.Errorf("encode: %w", err)
			}
			return c.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch))
		},
	}}
}

func orElse(value, other string) string {
	if value != "" {
		return value
	}
	return other
}

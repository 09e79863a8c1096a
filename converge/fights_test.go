// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// conflicts are scenarios with several writers: each with a bug and without it.
var conflicts = []struct {
	name  string
	make  func(buggy bool) Scenario
	cause Cause
	// wants are parts of the message.
	wants []string
}{
	{"the replicas of a shared deployment", func(buggy bool) Scenario {
		return Scenario{Setup: appProgram(buggy), Programs: []Program{{Name: "scaler", Setup: scaler("scaler")}}}
	}, CauseFight, []string{"scaler", "manager", "spec.replicas of Deployment default/a", "3, 1, 3, 1"}},
	{"a controller of the same program scales", func(buggy bool) Scenario {
		return Scenario{Setup: setups(appProgram(buggy), scaler("hpa"))}
	}, CauseFight, []string{"controller app", "controller hpa", "spec.replicas of Deployment default/a"}},
	{"an actor scales", func(buggy bool) Scenario {
		return Scenario{Setup: appProgram(buggy), World: []Actor{{
			Name: "autoscaler", For: &appsv1.Deployment{}, Act: func(
				ctx context.Context, c client.Client, obj client.Object,
			) error {
				d := obj.(*appsv1.Deployment)
				if d.Spec.Replicas != nil && *d.Spec.Replicas == 3 {
					return nil
				}
				d.Spec.Replicas = new(int32(3))
				return c.Update(ctx, d)
			},
		}}}
	}, CauseFight, []string{"autoscaler", "manager", "spec.replicas of Deployment default/a"}},
	{"a counter that grows", func(buggy bool) Scenario {
		keys := []string{"count", "count"}
		if !buggy {
			keys[1] = "other-count"
		}
		return Scenario{
			Setup:    marker("one", counter("one", keys[0])),
			Programs: []Program{{Name: "second", Setup: marker("two", counter("two", keys[1]))}},
		}
	}, CauseFight, []string{"manager", "second", "metadata.annotations[count] of Secret default/a", "by two"}},
	{"a webhook against a controller", func(buggy bool) Scenario {
		most := int32(2)
		if !buggy {
			most = 3
		}
		return Scenario{
			Setup:    setups(appProgram(false), scaler("hpa")),
			Programs: []Program{{Name: "policy", Setup: limiter(most)}},
		}
	}, CauseFight, []string{
		"webhook mdeployment-v1.kb.io", "manager", "spec.replicas of Deployment default/a", "3, 2, 3, 2",
	}},
	{"the owner of a config map", func(buggy bool) Scenario {
		meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
		return Scenario{
			For: &corev1.ConfigMap{}, Setup: adopter("one", buggy),
			Programs: []Program{{Name: "second", Setup: adopter("two", buggy)}},
			Given: []client.Object{
				&corev1.Service{ObjectMeta: meta("one"), Spec: corev1.ServiceSpec{ClusterIP: "None"}},
				&corev1.Service{ObjectMeta: meta("two"), Spec: corev1.ServiceSpec{ClusterIP: "None"}},
			},
			Steps:   Steps(Apply(&corev1.ConfigMap{ObjectMeta: meta("shared")}), Settle()),
			Desired: func(State) error { return nil }, // either may own it
		}
	}, CauseFight, []string{"metadata.ownerReferences[Service ", "of ConfigMap default/shared"}},
	{"a claim", func(buggy bool) Scenario {
		claim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim"}}
		return Scenario{
			For: &corev1.ConfigMap{}, Setup: claimer("one", buggy),
			Programs: []Program{{Name: "second", Setup: claimer("two", buggy)}},
			Steps:    Steps(Apply(claim), Settle()),
			Desired:  func(State) error { return nil }, // either may hold it
		}
	}, CauseFight, []string{"data.holder of ConfigMap default/claim", `"one", "two"`}},
	{"an operator of operators", func(buggy bool) Scenario {
		// The first program writes an object of the second one, which completes the image with a tag and runs it.
		return Scenario{
			Setup: copyAll("parent", &corev1.Secret{}, func(ctx context.Context, c client.Client, secret *corev1.Secret) error {
				child := configMapOf(secret, true)
				return createOrChange(ctx, c, child.DeepCopy(), func(m *corev1.ConfigMap) { m.Data = child.Data })
			}, &corev1.ConfigMap{}),
			Programs: []Program{{Name: "child", Setup: copyAll("runner", &corev1.ConfigMap{}, func(
				ctx context.Context, c client.Client, m *corev1.ConfigMap,
			) error {
				image := strings.TrimSuffix(m.Data["value"], ":latest") + ":latest"
				if buggy && m.Data["value"] != image {
					m.Data["value"] = image
					return c.Update(ctx, m)
				}
				app := appOf(&corev1.Secret{ObjectMeta: m.ObjectMeta, Data: map[string][]byte{"value": []byte(image)}})
				app.OwnerReferences = nil
				if err := controllerutil.SetControllerReference(m, app, scheme.Scheme); err != nil {
					return err
				}
				app.UID, app.ResourceVersion = "", ""
				return createOrChange(ctx, c, app.DeepCopy(), func(d *appsv1.Deployment) {
					d.Spec.Template.Spec.Containers[0].Image = image
				})
			}, &appsv1.Deployment{})}},
		}
	}, CauseFight, []string{"child", "manager", "data.value of ConfigMap default/a", `"1:latest", "1"`}},
	{"a service that neither watches", func(buggy bool) Scenario {
		key := "second"
		if buggy {
			key = "first"
		}
		label := func(key, value string) func(context.Context, client.Client, *corev1.Secret) error {
			return func(ctx context.Context, c client.Client, secret *corev1.Secret) error {
				service := &corev1.Service{ObjectMeta: secret.ObjectMeta, Spec: corev1.ServiceSpec{ClusterIP: "None"}}
				service.ResourceVersion, service.UID = "", ""
				return createOrChange(ctx, c, service, func(s *corev1.Service) {
					metav1.SetMetaDataLabel(&s.ObjectMeta, key, value)
				})
			}
		}
		return Scenario{
			Setup:    copyAll("one", &corev1.Secret{}, label("first", "one")),
			Programs: []Program{{Name: "second", Setup: copyAll("two", &corev1.Secret{}, label(key, "two"))}},
			Steps:    Steps(Apply(newSecret("a")), Settle()),
			Without: map[Fault]string{
				FaultChildDeleted: "the service is not watched", FaultDeleted: "the same", FaultRecreated: "the same",
			},
			Off: map[Oracle]string{OracleDeletion: "the service is left"},
		}
	}, CauseFight, []string{"another reconcile", "metadata.labels[first] of Service default/a"}},
	{"a slow fight", func(buggy bool) Scenario {
		key := "mine"
		if buggy {
			key = "yours"
		}
		secret := newSecret("a")
		return Scenario{
			Setup: toggler("one", "yours"), Programs: []Program{{Name: "second", Setup: toggler("two", key)}},
			Steps: Steps(Apply(secret), Sleep(10*time.Minute), Change(secret, func(s *corev1.Secret) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, "until", "now")
			}), Settle()),
		}
	}, CauseFight, []string{"during a sleep", "metadata.annotations[yours] of Secret default/a", `"one", "two"`}},
	{"a ring of three programs", ringScenario, CauseChain, []string{
		"manager has modified ConfigMap default/a", "second has modified Service default/a",
		"third has modified Secret default/a",
	}},
	{"questions and answers", pairScenario, CauseChain, []string{
		"manager has modified Secret default/a", "second has modified Secret default/a",
	}},
}

// TestConflicts finds each conflict of several writers in a default run, with its cause, and nothing in the correct
// twin.
func TestConflicts(t *testing.T) {
	for _, c := range conflicts {
		t.Run(c.name, func(t *testing.T) {
			f := foundIn(t, inDefaults(c.make(true)))
			if f == nil {
				t.Fatal("nothing was found")
			}
			if f.Violation.Cause != c.cause {
				t.Errorf("the cause is %s, want %s:\n%s", f.Violation.Cause, c.cause, f)
			}
			for _, want := range c.wants {
				if !strings.Contains(f.Violation.Message, want) {
					t.Errorf("got %q, want %q in it", f.Violation.Message, want)
				}
			}
			if want := map[Cause]string{
				CauseFight: "let one writer decide about the field", CauseChain: "break the cycle",
			}[c.cause]; want == "" ||
				!strings.HasPrefix(f.Hint, want) {
				t.Errorf("the hint is %q", f.Hint)
			}
			converges(t, inDefaults(c.make(false)), Options{Seed: 1})
		})
	}
}

// inDefaults fills in what most scenarios share.
func inDefaults(s Scenario) Scenario {
	s.Scheme = scheme.Scheme
	if s.For == nil {
		s.For = &corev1.Secret{}
	}
	if s.Steps == nil {
		s.Steps = Lifecycle(newSecret("a"), func(secret *corev1.Secret) { secret.Data["value"] = []byte("2") })
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func TestDiffWiring(t *testing.T) {
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "it"}}
	website := watchesOf(&fixture.Resource{})
	for name, tc := range map[string]struct {
		expected, observed *Wiring
		want               []string
	}{
		"equal": {
			expected: &Wiring{For: website}, observed: &Wiring{For: website, notes: []string{"not shown"}},
		},
		"the order, repetitions and contents do not matter": {
			expected: &Wiring{
				For:  website,
				Owns: watchesOf(&corev1.Secret{}, &corev1.ConfigMap{Data: map[string]string{"a": "b"}}, &corev1.Secret{}),
			},
			observed: &Wiring{For: website, Owns: watchesOf(&corev1.ConfigMap{}, &corev1.Secret{})},
		},
		"wrapped objects": {
			expected: &Wiring{
				For: watchesOf(dieLike{&corev1.ConfigMap{}}),
			}, observed: &Wiring{For: watchesOf(&corev1.ConfigMap{})},
		},
		"the order of what is ignored": {
			expected: &Wiring{For: []Watch{{Object: &fixture.Resource{}, Ignores: []Change{Deleted, Created}}}},
			observed: &Wiring{For: []Watch{{Object: &fixture.Resource{}, Ignores: []Change{Created, Deleted}}}},
		},
		"a watch that was forgotten, and one that was not expected": {
			expected: &Wiring{For: website, Owns: watchesOf(&appsv1.Deployment{}, &corev1.Service{})},
			observed: &Wiring{
				For: website, Owns: watchesOf(&appsv1.Deployment{}), Tracks: watchesOf(&corev1.Service{}),
				notes: []string{"this", "that"},
			},
			want: []string{
				"  For: trueup.dev/internal/testkit/fixture.Resource",
				"  Owns: k8s.io/api/apps/v1.Deployment",
				"- Owns: k8s.io/api/core/v1.Service",
				"+ Tracks: k8s.io/api/core/v1.Service",
				"note: this", "note: that",
			},
		},
		"forms of a kind": {
			expected: &Wiring{Watches: watchesOf(&corev1.ConfigMap{})},
			observed: &Wiring{Watches: watchesOf(unstructuredKind("v1", "ConfigMap"), metadataKind("v1", "ConfigMap"))},
			want: []string{
				"- Watches: k8s.io/api/core/v1.ConfigMap", "+ Watches: v1 ConfigMap (metadata only)",
				"+ Watches: v1 ConfigMap (unstructured)",
			},
		},
		"another cluster": {
			expected: &Wiring{
				Owns: []Watch{{Object: &corev1.Secret{}, Cluster: "remote"}},
			}, observed: &Wiring{Owns: watchesOf(&corev1.Secret{})},
			want: []string{"+ Owns: k8s.io/api/core/v1.Secret", `- Owns: k8s.io/api/core/v1.Secret in cluster "remote"`},
		},
		"what is ignored": {
			expected: &Wiring{For: website}, observed: &Wiring{
				For: []Watch{{Object: &fixture.Resource{}, Ignores: generationIgnores}},
			},
			want: []string{
				"- For: trueup.dev/internal/testkit/fixture.Resource",
				"+ For: trueup.dev/internal/testkit/fixture.Resource, ignores: status changed, labels changed, annotations changed, " +
					"resynced",
			},
		},
		"nothing": {
			expected: &Wiring{For: []Watch{{}}}, observed: &Wiring{},
			want: []string{"- For: nothing"},
		},
		"no expectation": {
			observed: &Wiring{For: website},
			want:     []string{"+ For: trueup.dev/internal/testkit/fixture.Resource"},
		},
		"the controller": {
			expected: &Wiring{
				Controller: "site", AtStart: []reconcilers.Request{request},
				Options: ControllerOptions{ReconciliationTimeout: time.Second},
			},
			observed: &Wiring{
				Options: ControllerOptions{MaxConcurrentReconciles: 2, CacheSyncTimeout: 2 * time.Minute, RecoverPanic: new(false)},
			},
			want: []string{
				"- Controller: site", "- AtStart: default/it",
				"+ Options: MaxConcurrentReconciles 2", "- Options: ReconciliationTimeout 1s", "+ Options: RecoverPanic false",
			},
		},
		"no name was expected": {
			expected: &Wiring{}, observed: &Wiring{Controller: "site"},
			want: []string{"+ Controller: site"},
		},
		"indexes without an assertion": {
			expected: &Wiring{}, observed: &Wiring{Indexes: []Index{{Object: &corev1.Pod{}, Field: "spec.nodeName"}}},
		},
		"no index": {
			expected: &Wiring{Indexes: []Index{}}, observed: &Wiring{
				Indexes: []Index{{Object: &corev1.Pod{}, Field: "spec.nodeName", Cluster: "remote"}},
			},
			want: []string{`+ Indexes: k8s.io/api/core/v1.Pod in cluster "remote" by spec.nodeName`},
		},
		"a further controller": {
			expected: &Wiring{Others: []Wiring{{For: website}}},
			observed: &Wiring{Others: []Wiring{{For: website, Controller: "first"}, {}}},
			want: []string{
				"- Others: further controllers: 1", "+ Others: further controllers: 2",
				"+ Others[0].Controller: first", "  Others[0].For: trueup.dev/internal/testkit/fixture.Resource",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), diffWiring(tc.expected, tc.observed)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// dieLike is an object that unwraps itself when it is copied.
type dieLike struct{ client.Object }

func (w dieLike) DeepCopyObject() runtime.Object { return w.Object.DeepCopyObject() }

func TestWiring_Notes(t *testing.T) {
	const observed = "no event of k8s.io/api/core/v1.ConfigMap led to a request: the predicates or the handler may " +
		"accept only certain objects, or use a tracker other than that of the config. Give an object that they accept to " +
		"see what it leads to."
	for name, tc := range map[string]struct {
		accepts func(client.Object) bool
		want    []string
	}{
		"nothing is seen": {
			accepts: func(client.Object) bool { return false },
			want:    []string{observed},
		},
		"a panic": {
			accepts: func(obj client.Object) bool { return obj.(*corev1.ConfigMap).BinaryData["key"][0] == 1 },
			want: []string{
				"an event of k8s.io/api/core/v1.ConfigMap made a predicate or the handler of the watch panic: " +
					"runtime error: index out of range [0] with length 0",
				observed,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wiring := RecordWiring(t, wiringScheme(t), wiredPlain(t, func(bldr *reconcilers.Builder, _ ctrl.Manager) {
				bldr.For(&fixture.Resource{}).Owns(
					&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(tc.accepts)),
				)
			}))
			if diff := cmp.Diff(tc.want, wiring.notes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wiring.Assert(t, &Wiring{For: watchesOf(&fixture.Resource{}), Watches: watchesOf(&corev1.ConfigMap{})})
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

var errOnPurpose = errors.New("on purpose")

// caseFailures are the failures of a reconciler that have nothing to do with lists.
var caseFailures = map[string]func(t *testing.T){
	"result": func(t *testing.T) {
		rtesting.ReconcilerTests{
			"comes back later": {ExpectedResult: reconcile.Result{RequeueAfter: time.Minute}},
		}.Run(t, scheme, returning(reconcile.Result{RequeueAfter: time.Hour}, nil))
	},
	"error": func(t *testing.T) {
		rtesting.ReconcilerTests{"works": {}}.Run(
			t, scheme, returning(reconcile.Result{RequeueAfter: time.Hour}, errOnPurpose),
		)
	},
	"no-error": func(t *testing.T) {
		rtesting.ReconcilerTests{"fails": {ShouldErr: true}}.Run(t, scheme, withoutEffect)
	},
	"tutorial": func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}}
		rtesting.ReconcilerTests{
			"old secrets are deleted": {
				Request:       reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "token"}},
				GivenObjects:  []client.Object{secret},
				ExpectDeletes: []rtesting.DeleteRef{{Kind: "Secret", Namespace: "default", Name: "tokens"}},
			},
		}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
			return expiryReconciler(c)
		})
	},
	"verify": func(t *testing.T) {
		rtesting.ReconcilerTests{"fails": {ShouldErr: true, Verify: func(t *testing.T, _ reconcile.Result, err error) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error is %q, want %q", err, context.Canceled)
			}
		}}}.Run(t, scheme, returning(reconcile.Result{}, errOnPurpose))
	},
	"prepare": func(t *testing.T) {
		rtesting.ReconcilerTestSuite{
			{
				Name: "fails",
				Prepare: func(_ *testing.T, ctx context.Context, _ *rtesting.ReconcilerTestCase) (context.Context, error) {
					return ctx, errOnPurpose
				},
				CleanUp: func(t *testing.T, _ context.Context, _ *rtesting.ReconcilerTestCase) error {
					t.Error("cleaned up after Prepare has failed")
					return nil
				},
			},
			{
				Name: "forgets the context",
				Prepare: func(*testing.T, context.Context, *rtesting.ReconcilerTestCase) (context.Context, error) {
					return nil, nil //nolint:nilnil // that is the mistake
				},
			},
		}.Run(t, scheme, withoutEffect)
	},
	"clean-up": func(t *testing.T) {
		rtesting.ReconcilerTests{"leaves something": {
			CleanUp: func(*testing.T, context.Context, *rtesting.ReconcilerTestCase) error { return errOnPurpose },
		}}.Run(t, scheme, withoutEffect)
	},
	"no-reconciler": func(t *testing.T) {
		rtesting.ReconcilerTests{"has nothing to test": {}}.Run(t, scheme,
			func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
				return (*reconcilers.ResourceReconciler[*fixture.Resource])(nil)
			})
	},
	"no-scheme": func(t *testing.T) {
		rtesting.ReconcilerTests{"knows no kinds": {}}.Run(t, nil, withoutEffect)
	},
	"validation": func(t *testing.T) {
		rtesting.ReconcilerTests{"checks what is nested too": {}}.Run(t, scheme,
			func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
				return &reconcilers.ResourceReconciler[*fixture.Resource]{
					Name: "Site",
					Reconciler: reconcilers.Sequence[*fixture.Resource]{
						&reconcilers.SyncReconciler[*fixture.Resource]{Name: "Publish"},
						&reconcilers.WithFinalizer[*fixture.Resource]{Name: "Unpublish"},
					},
					Config: c,
				}
			})
	},
	"given-objects": func(t *testing.T) {
		rtesting.ReconcilerTests{"are of no known kind": {
			GivenObjects:    []client.Object{page("home", ""), &fixture.Duck{}},
			APIGivenObjects: []client.Object{nil},
			GivenTracks:     []rtesting.TrackRequest{{}},
		}}.Run(t, scheme, withoutEffect)
	},
	"events-dropped": func(t *testing.T) {
		rtesting.ReconcilerTests{
			"emits an event for an object of an unknown kind": {},
		}.Run(t, scheme, doing(func(_ context.Context, c reconcilers.Config) error {
			c.Recorder.Event(&fixture.Duck{}, corev1.EventTypeNormal, "Published", "")
			return nil
		}))
	},
	"no-factory": func(t *testing.T) {
		rtesting.ReconcilerTests{"root": {}}.Run(t, scheme, nil)
		rtesting.SubReconcilerTests[*fixture.Resource]{"step": {Resource: &fixture.Resource{}}}.Run(t, scheme, nil)
		rtesting.AdmissionWebhookTests{"webhook": {Request: &admission.Request{}}}.RunWithContext(t, scheme, nil)
		rtesting.AdmissionWebhookTests{"old webhook": {Request: &admission.Request{}}}.Run(t, scheme, nil)
	},
	"status-not-found": func(t *testing.T) {
		given := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog", Generation: 1}}
		rtesting.ReconcilerTests{"forgets StatusSubResourceTypes": {
			Request:      reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(given)},
			GivenObjects: []client.Object{given},
			ExpectStatusUpdates: []client.Object{
				rtesting.With(given, func(r *fixture.Resource) { r.Status.ObservedGeneration = 1 }),
			},
		}}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				written := given.DeepCopy()
				written.Status.ObservedGeneration = 1
				return reconcile.Result{}, c.Status().Update(ctx, written)
			})
		})
	},
	"never-created": func(t *testing.T) {
		stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog"}}
		rtesting.ReconcilerTests{"stores an object without a creationTimestamp": {
			WithClientBuilder: func(b *fake.ClientBuilder) *fake.ClientBuilder { return b.WithObjects(stored.DeepCopy()) },
			ExpectCreates:     []client.Object{stored},
		}}.Run(t, scheme, doing(func(ctx context.Context, c reconcilers.Config) error {
			return c.Create(ctx, stored.DeepCopy())
		}))
	},
	"realistic": func(t *testing.T) {
		evict := doing(func(ctx context.Context, c reconcilers.Config) error {
			return c.SubResource("eviction").Create(ctx, pod("a"), &policyv1.Eviction{})
		})
		tests := rtesting.ReconcilerTests{"evicts": {GivenObjects: []client.Object{pod("a")}}}
		tests.Run(t, scheme, evict)
		tests.Run(t, scheme, evict, rtesting.Realistic())
	},
	"wiring": func(t *testing.T) {
		rtesting.ReconcilerTests{"tracks pages": {
			ExpectWiring: &rtesting.Wiring{
				For:    []rtesting.Watch{{Object: &fixture.Resource{}}},
				Tracks: []rtesting.Watch{{Object: &corev1.ConfigMap{}}},
			},
		}}.Run(t, scheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
			return &reconcilers.ResourceReconciler[*fixture.Resource]{
				Reconciler: &reconcilers.SyncReconciler[*fixture.Resource]{Sync: label[*fixture.Resource]},
				Config:     c,
			}
		})
	},
	"wiring-unknown": func(t *testing.T) {
		rtesting.ReconcilerTests{"cannot be set up": {ExpectWiring: &rtesting.Wiring{}}}.Run(t, scheme, withoutEffect)
	},
	"additional-configs": func(t *testing.T) {
		rtesting.ReconcilerTests{"works on two clusters": {
			ExpectCreates: []client.Object{page("here", "")},
			AdditionalConfigs: map[string]rtesting.ExpectConfig{
				"east": {ExpectCreates: []client.Object{page("there", "East")}},
				"west": {ExpectCreates: []client.Object{page("there", "West")}},
			},
		}}.Run(t, scheme, doing(func(ctx context.Context, _ reconcilers.Config) error {
			configs := reconcilers.RetrieveAdditionalConfigs(ctx)
			configs["west"].Recorder.Event(site("blog", ""), corev1.EventTypeNormal, "Mirrored", "")
			return configs["east"].Create(ctx, page("there", "Eastern"))
		}))
	},
}

// withoutLogs leaves the logs out of what a failing case prints.
func withoutLogs[T client.Object](r reconcilers.SubReconciler[T]) reconcilers.SubReconciler[T] {
	return &reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, resource T) error {
		_, err := r.Reconcile(logr.NewContext(ctx, logr.Discard()), resource)
		return err
	}}
}

// subCaseFailures are those that only a subreconciler can have.
var subCaseFailures = map[string]func(t *testing.T){
	"sub-resource-realistic": func(t *testing.T) {
		given := &fixture.Resource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blog", UID: "blog-uid", Generation: 2},
		}
		rtesting.SubReconcilerTests[*fixture.Resource]{
			"has a uid of its own": {Resource: given, StatusSubResourceTypes: []client.Object{given}, Realistic: true},
		}.Run(t, scheme, syncing(label[*fixture.Resource]))
	},
	"sub-resource-missing": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{"has nothing to reconcile": {}}.Run(
			t, scheme, syncing(label[*fixture.Resource]),
		)
	},
	"sub-resource": func(t *testing.T) {
		rtesting.SubReconcilerTestSuite[*fixture.Resource]{
			{Name: "is changed", Resource: site("blog", "")},
			{Name: "is not changed so", Resource: site("blog", ""), ExpectResource: site("blog", "https://blog")},
		}.Run(t, scheme, syncing(label[*fixture.Resource]))
	},
	"sub-name-is-taken": func(t *testing.T) {
		blog, blocker := site("blog", ""), page("blog", "")
		rtesting.SubReconcilerTestSuite[*fixture.Resource]{
			{Name: "no blocker is given", Resource: blog},
			{
				Name: "the blocker is given", Resource: blog, APIGivenObjects: []client.Object{blocker},
				ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(blocker, blog, scheme)},
			},
		}.Run(t, scheme, func(
			_ *testing.T, _ *rtesting.SubReconcilerTestCase[*fixture.Resource], c reconcilers.Config,
		) reconcilers.SubReconciler[*fixture.Resource] {
			taken := apierrs.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, "blog")
			c.Client.(rtesting.TestClient).AddReactor("create", "ConfigMap", func(
				rtesting.Action,
			) (bool, runtime.Object, error) {
				return true, nil, taken
			})
			return withoutLogs(&reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) { return page("blog", ""), nil },
				// An object manager that has nothing to say.
				ChildObjectManager: &rtesting.StubObjectManager[*corev1.ConfigMap]{},
				ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, _ *corev1.ConfigMap, err error) {
					parent.Status.Fields = map[string]string{"error": err.Error()}
				},
			})
		})
	},
	"sub-stash": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{"is there for the next": {
			Resource: site("blog", ""),
			ExpectStashedValues: map[stash.Key]interface{}{
				"home":   page("home", "Welcome"),
				"pages":  3,
				"author": "another",
				"none":   nil,
			},
		}}.Run(t, scheme, syncing(func(ctx context.Context, _ *fixture.Resource) error {
			stash.StoreValue(ctx, "home", page("home", "Hello"))
			stash.StoreValue(ctx, "pages", "three")
			stash.StoreValue(ctx, "none", []string{"one"})
			return nil
		}))
	},
	"sub-outcome": func(t *testing.T) {
		rtesting.SubReconcilerTestSuite[*fixture.Resource]{
			{Name: "result", Resource: site("blog", ""), ExpectedResult: reconcile.Result{RequeueAfter: time.Minute}},
			{Name: "error", Resource: site("blog", ""), ShouldErr: true},
			{Name: "panic", Resource: site("blog", ""), ShouldPanic: true},
		}.Run(t, scheme, syncing(func(context.Context, *fixture.Resource) error { return nil }))
	},
	"sub-no-reconciler": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{"has nothing to test": {Resource: site("blog", "")}}.Run(t, scheme,
			func(*testing.T, *subCase, reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
				return nil
			})
	},
	"sub-validation": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{"is not complete": {Resource: site("blog", "")}}.Run(t, scheme,
			syncing[*fixture.Resource](nil))
	},
	"sub-wiring": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{"has pages": {
			Resource: site("blog", ""), ExpectWiring: &rtesting.Wiring{Owns: []rtesting.Watch{{Object: &corev1.ConfigMap{}}}},
		}}.Run(t, scheme, syncing(func(context.Context, *fixture.Resource) error { return nil }))
	},
	"sub-additional-reconciles": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{"remembers": {
			Resource: site("blog", ""),
			AdditionalReconciles: []subCase{
				{Name: "does nothing again", Resource: site("blog", "")},
				{Name: "does nothing forever", Resource: site("blog", "")},
			},
		}}.Run(t, scheme, func(*testing.T, *subCase, reconcilers.Config) reconcilers.SubReconciler[*fixture.Resource] {
			calls := 0
			return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(ctx context.Context, _ *fixture.Resource) error {
				if calls++; calls < 3 {
					return nil
				}
				return reconcilers.RetrieveConfigOrDie(ctx).Create(ctx, page("surprise", ""))
			}}
		})
	},
}

// webhookFailures are those that only a webhook can have.
var webhookFailures = map[string]func(t *testing.T){
	"webhook-request-missing": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{"has nothing to answer": {}}.RunWithContext(t, scheme, handling(nil))
	},
	"webhook-response": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{"is allowed": {
			Request:          &admission.Request{},
			ExpectedResponse: admission.Allowed("").WithWarnings("be careful"),
		}}.RunWithContext(t, scheme, handling(func(context.Context, admission.Request) admission.Response {
			return admission.Patched("", jsonpatch.NewOperation("add", "/metadata/labels", map[string]any{"theme": "dark"}))
		}))
	},
	"webhook-denied": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{"is allowed": {
			Request:          &admission.Request{},
			ExpectedResponse: admission.Allowed(""),
		}}.RunWithContext(t, scheme, handling(func(context.Context, admission.Request) admission.Response {
			return admission.Errored(http.StatusTeapot, errOnPurpose)
		}))
	},
	"webhook-factory": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{"cannot be built": {Request: &admission.Request{}}}.RunWithContext(t, scheme,
			func(
				*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
			) (*admission.Webhook, error) {
				return nil, errOnPurpose
			})
	},
	"webhook-missing": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{"has nothing to test": {Request: &admission.Request{}}}.RunWithContext(t, scheme,
			func(
				*testing.T, context.Context, *rtesting.AdmissionWebhookTestCase, reconcilers.Config,
			) (*admission.Webhook, error) {
				return nil, nil //nolint:nilnil // that is the mistake
			})
	},
	"webhook-panic": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{
			"should panic": {Request: &admission.Request{}, ShouldPanic: true},
		}.RunWithContext(t, scheme,
			handling(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
	},
	"webhook-side-effects": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{
			"has none": {Request: &admission.Request{}, ExpectedResponse: admission.Allowed("")},
		}.RunWithContext(t, scheme,
			func(
				_ *testing.T, _ context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
			) (*admission.Webhook, error) {
				return &admission.Webhook{Handler: handler(func(ctx context.Context, _ admission.Request) admission.Response {
					if err := c.Create(ctx, page("home", "Hello")); err != nil {
						return admission.Errored(http.StatusConflict, err)
					}
					return admission.Allowed("")
				})}, nil
			})
	},
}

// suiteFailures are the failures of suites, whatever the kind of case.
var suiteFailures = map[string]func(t *testing.T){
	"focus-reconciler": func(t *testing.T) {
		rtesting.ReconcilerTestSuite{
			{Name: "first", Focus: true}, {Name: "second", ShouldErr: true}, {Name: "third", Focus: true}, {
				Name: "skipped", Focus: true, Skip: true,
			},
		}.Run(t, scheme, withoutEffect)
	},
	"focus-sub-reconciler": func(t *testing.T) {
		rtesting.SubReconcilerTests[*fixture.Resource]{
			"first": {Focus: true, Resource: site("blog", "")}, "second": {}, "third": {},
		}.Run(t, scheme, syncing(func(context.Context, *fixture.Resource) error { return nil }))
	},
	"focus-webhook": func(t *testing.T) {
		rtesting.AdmissionWebhookTests{
			"first": {
				Focus: true, Request: &admission.Request{}, ExpectedResponse: admission.Allowed("").WithWarnings(),
			}, "second": {},
		}.RunWithContext(
			t, scheme, handling(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }),
		)
	},
}

func returning(result reconcile.Result, err error) rtesting.ReconcilerFactory {
	return func(*testing.T, *rtesting.ReconcilerTestCase, reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return result, err })
	}
}

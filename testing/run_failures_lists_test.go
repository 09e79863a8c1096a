// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	"trueup.dev/tracker"
)

// listFailures have one case for each way in which what is observed can be something else than the list of what is
// expected.
var listFailures = map[string]func(t *testing.T){
	"creates": listFailure(
		do(client.Client.Create, page("home", "Hello"), page("about", "About")),
		rtesting.ReconcilerTestCase{ExpectCreates: []client.Object{page("home", "Welcome")}},
		rtesting.ReconcilerTestCase{
			ExpectCreates: []client.Object{page("home", "Hello"), page("about", "About"), page("contact", "Contact")},
		},
	),
	"updates": listFailure(
		do(client.Client.Update, page("home", "Hello"), page("about", "About")),
		rtesting.ReconcilerTestCase{ExpectUpdates: []client.Object{page("home", "Welcome")}},
		rtesting.ReconcilerTestCase{
			ExpectUpdates: []client.Object{page("home", "Hello"), page("about", "About"), page("contact", "Contact")},
		},
	),
	"patches": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			return errors.Join(
				c.Patch(ctx, page("home", "Hello"), client.RawPatch(types.MergePatchType, []byte(`{"data":{"title":"Hello"}}`))),
				c.Patch(ctx, page("about", "About"), client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))),
			)
		},
		rtesting.ReconcilerTestCase{ExpectPatches: []rtesting.PatchRef{pagePatch("home", `{"data":{"title":"Welcome"}}`)}},
		rtesting.ReconcilerTestCase{ExpectPatches: []rtesting.PatchRef{
			pagePatch("home", `{"data":{"title":"Hello"}}`), pagePatch("about", `{"data":null}`),
			pagePatch("contact", `{"data":null}`),
		}},
	),
	"deletes": listFailure(
		do(client.Client.Delete, page("home", ""), page("about", "")),
		rtesting.ReconcilerTestCase{
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "default", Name: "index"}},
		},
		rtesting.ReconcilerTestCase{ExpectDeletes: []rtesting.DeleteRef{
			{Kind: "ConfigMap", Namespace: "default", Name: "home"},
			{Kind: "ConfigMap", Namespace: "default", Name: "about"},
			{Kind: "ConfigMap", Namespace: "default", Name: "contact"},
		}},
	),
	"delete-collections": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			return errors.Join(
				c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"site": "blog"}),
				c.DeleteAllOf(ctx, &fixture.Resource{}, client.InNamespace("drafts")),
			)
		},
		rtesting.ReconcilerTestCase{ExpectDeleteCollections: []rtesting.DeleteCollectionRef{{
			Kind: "ConfigMap", Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"site": "shop"}),
		}}},
		rtesting.ReconcilerTestCase{ExpectDeleteCollections: []rtesting.DeleteCollectionRef{
			{Kind: "ConfigMap", Namespace: "default", Labels: labels.SelectorFromSet(labels.Set{"site": "blog"})},
			{Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "drafts"},
			{Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "archive"},
		}},
	),
	"applies": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			owner := client.FieldOwner("site")
			return errors.Join(c.Apply(ctx, pageApply("home", "Hello"), owner), c.Apply(ctx, pageApply("about", "About"), owner))
		},
		rtesting.ReconcilerTestCase{ExpectApplies: []rtesting.ApplyRef{applyRef("home", "Welcome")}},
		rtesting.ReconcilerTestCase{ExpectApplies: []rtesting.ApplyRef{
			applyRef("home", "Hello"), applyRef("about", "About"), applyRef("contact", "Contact"),
		}},
	),
	"status-updates": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			return errors.Join(
				updateStatus(ctx, c, site("blog", "https://blog")), updateStatus(ctx, c, site("shop", "https://shop")),
			)
		},
		rtesting.ReconcilerTestCase{ExpectStatusUpdates: []client.Object{site("blog", "http://blog")}},
		rtesting.ReconcilerTestCase{ExpectStatusUpdates: []client.Object{
			site("blog", "https://blog"), site("shop", "https://shop"), site("wiki", "https://wiki"),
		}},
	),
	"status-patches": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			return errors.Join(
				c.Status().Patch(
					ctx, site("blog", ""),
					client.RawPatch(types.MergePatchType, []byte(`{"status":{"fields":{"url":"https://blog"}}}`)),
				),
				c.Status().Patch(ctx, site("shop", ""), client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))),
			)
		},
		rtesting.ReconcilerTestCase{
			ExpectStatusPatches: []rtesting.PatchRef{statusPatch("blog", `{"status":{"fields":{"url":"http://blog"}}}`)},
		},
		rtesting.ReconcilerTestCase{ExpectStatusPatches: []rtesting.PatchRef{
			statusPatch("blog", `{"status":{"fields":{"url":"https://blog"}}}`), statusPatch("shop", `{"status":null}`),
			statusPatch("wiki", `{"status":null}`),
		}},
	),
	"status-applies": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			owner := client.FieldOwner("site")
			return errors.Join(
				c.Status().Apply(ctx, nodeApply("a", corev1.NodeRunning), owner),
				c.Status().Apply(ctx, nodeApply("b", corev1.NodePending), owner),
			)
		},
		rtesting.ReconcilerTestCase{ExpectStatusApplies: []rtesting.ApplyRef{nodeApplyRef("a", corev1.NodeTerminated)}},
		rtesting.ReconcilerTestCase{ExpectStatusApplies: []rtesting.ApplyRef{
			nodeApplyRef("a", corev1.NodeRunning), nodeApplyRef("b", corev1.NodePending), nodeApplyRef("c", corev1.NodePending),
		}},
	),
	"sub-resources": listFailure(
		func(ctx context.Context, c reconcilers.Config) error {
			return errors.Join(
				c.SubResource("eviction").Create(ctx, pod("a"), &policyv1.Eviction{}),
				c.SubResource("eviction").Create(ctx, pod("b"), &policyv1.Eviction{}),
			)
		},
		rtesting.ReconcilerTestCase{ExpectSubResources: []rtesting.SubResourceRef{eviction("c")}},
		rtesting.ReconcilerTestCase{
			ExpectSubResources: []rtesting.SubResourceRef{eviction("a"), eviction("b"), eviction("c")},
		},
	),
	"events": listFailure(
		func(_ context.Context, c reconcilers.Config) error {
			c.Recorder.Event(site("blog", ""), corev1.EventTypeNormal, "Published", "2 pages")
			c.Recorder.Event(site("blog", ""), corev1.EventTypeWarning, "Stale", "3 days old")
			return nil
		},
		rtesting.ReconcilerTestCase{ExpectEvents: []rtesting.Event{siteEvent(corev1.EventTypeNormal, "Published", "1 page")}},
		rtesting.ReconcilerTestCase{ExpectEvents: []rtesting.Event{
			siteEvent(corev1.EventTypeNormal, "Published", "2 pages"), siteEvent(corev1.EventTypeWarning, "Stale", "3 days old"),
			siteEvent(corev1.EventTypeNormal, "Deleted", "1 page"),
		}},
	),
	"tracks": listFailure(
		func(_ context.Context, c reconcilers.Config) error {
			return errors.Join(
				c.Tracker.TrackObject(page("home", ""), site("blog", "")),
				c.Tracker.TrackReference(tracker.Reference{
					Kind: "ConfigMap", Namespace: "default", Selector: labels.SelectorFromSet(labels.Set{"site": "blog"}),
				}, site("blog", "")),
			)
		},
		rtesting.ReconcilerTestCase{
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(page("index", ""), site("blog", ""), scheme)},
		},
		rtesting.ReconcilerTestCase{ExpectTracks: []rtesting.TrackRequest{
			rtesting.NewTrackRequest(page("home", ""), site("blog", ""), scheme),
			{
				Tracker: types.NamespacedName{Namespace: "default", Name: "blog"},
				TrackedReference: tracker.Reference{
					Kind: "ConfigMap", Namespace: "default", Selector: labels.SelectorFromSet(labels.Set{"site": "blog"}),
				},
			},
			rtesting.NewTrackRequest(page("contact", ""), site("blog", ""), scheme),
		}},
	),
}

// listFailure is a failure for two cases: in the first the expected call differs and another one is too many, in the
// second one is missing.
func listFailure(
	do func(ctx context.Context, c reconcilers.Config) error, differs, missing rtesting.ReconcilerTestCase,
) func(t *testing.T) {
	differs.Name, missing.Name = "differs, and one too many", "one too few"
	suite := rtesting.ReconcilerTestSuite{differs, missing}
	for i := range suite {
		suite[i].StatusSubResourceTypes = []client.Object{&fixture.Resource{}}
		suite[i].GivenObjects = []client.Object{site("blog", ""), site("shop", ""), pod("a"), pod("b"), node("a"), node("b")}
		if suite[i].ExpectCreates == nil {
			suite[i].GivenObjects = append(suite[i].GivenObjects, page("home", ""), page("about", ""))
		}
	}
	return func(t *testing.T) { suite.Run(t, scheme, doing(do)) }
}

// doing is the factory for a reconciler that does what the function does.
func doing(do func(ctx context.Context, c reconcilers.Config) error) rtesting.ReconcilerFactory {
	return func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, do(ctx, c)
		})
	}
}

// do returns a function that makes a call for each of the objects.
func do[Option any](
	call func(c client.Client, ctx context.Context, obj client.Object, opts ...Option) error, objs ...client.Object,
) func(ctx context.Context, c reconcilers.Config) error {
	return func(ctx context.Context, c reconcilers.Config) error {
		var errs []error
		for _, obj := range objs {
			errs = append(errs, call(c.Client, ctx, obj.DeepCopyObject().(client.Object)))
		}
		return errors.Join(errs...)
	}
}

// page is a config map with one entry.
func page(name, title string) *corev1.ConfigMap {
	page := configMap(name)
	page.Data = map[string]string{"title": title}
	return page
}

func pagePatch(name, patch string) rtesting.PatchRef {
	return rtesting.PatchRef{
		Kind: "ConfigMap", Namespace: "default", Name: name, PatchType: types.MergePatchType, Patch: []byte(patch),
	}
}

func pageApply(name, title string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap(name, "default").WithData(map[string]string{"title": title})
}

func applyRef(name, title string) rtesting.ApplyRef {
	return rtesting.ApplyRef{
		Kind: "ConfigMap", Namespace: "default", Name: name, ApplyConfiguration: pageApply(name, title),
	}
}

// site is a resource with an entry in its status.
func site(name, url string) *fixture.Resource {
	site := newResource(name)
	site.Spec.Fields = map[string]string{"theme": "dark"}
	if url != "" {
		site.Status.Fields = map[string]string{"url": url}
	}
	return site
}

// updateStatus sets the status of a site to the status of another one.
func updateStatus(ctx context.Context, c reconcilers.Config, desired *fixture.Resource) error {
	actual := &fixture.Resource{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(desired), actual); err != nil {
		return err
	}
	actual.Status = desired.Status
	return c.Status().Update(ctx, actual)
}

func statusPatch(name, patch string) rtesting.PatchRef {
	return rtesting.PatchRef{
		Group: "fixture.trueup.dev", Kind: "Resource", Namespace: "default", Name: name, SubResource: "status",
		PatchType: types.MergePatchType, Patch: []byte(patch),
	}
}

func siteEvent(eventType, reason, message string) rtesting.Event {
	return rtesting.NewEvent(site("blog", ""), scheme, eventType, reason, "%s", message)
}

func node(name string) *corev1.Node {
	node := &corev1.Node{}
	node.Name = name
	return node
}

func nodeApply(name string, phase corev1.NodePhase) *corev1ac.NodeApplyConfiguration {
	return corev1ac.Node(name).WithStatus(corev1ac.NodeStatus().WithPhase(phase))
}

func nodeApplyRef(name string, phase corev1.NodePhase) rtesting.ApplyRef {
	return rtesting.ApplyRef{Kind: "Node", Name: name, ApplyConfiguration: nodeApply(name, phase)}
}

func pod(name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "default", name
	return pod
}

func eviction(pod string) rtesting.SubResourceRef {
	return rtesting.SubResourceRef{
		Verb: "create", Kind: "Pod", Namespace: "default", Name: pod, SubResource: "eviction", Body: &policyv1.Eviction{},
	}
}

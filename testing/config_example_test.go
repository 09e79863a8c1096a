// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// paint is what the examples test.
func paint(ctx context.Context, c reconcilers.Config, color string) error {
	theme := &corev1.ConfigMap{}
	if err := c.TrackAndGet(ctx, types.NamespacedName{Namespace: "web", Name: "theme"}, theme); err != nil {
		return err
	}
	theme.Data = map[string]string{"color": color}
	if err := c.Update(ctx, theme); err != nil {
		return err
	}
	c.Recorder.Eventf(theme, corev1.EventTypeNormal, "Painted", "it is %s now", color)
	return nil
}

// A function that takes a config is tested without a reconciler around it.
func ExampleExpectConfig() {
	var t *testing.T // the argument of the test
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"}}
	blog := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}

	c := &rtesting.ExpectConfig{
		Scheme:       clientgoscheme.Scheme,
		GivenObjects: []client.Object{theme},
		ExpectUpdates: []client.Object{
			rtesting.With(theme, func(theme *corev1.ConfigMap) { theme.Data = map[string]string{"color": "blue"} }),
		},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(theme, clientgoscheme.Scheme, corev1.EventTypeNormal, "Painted", "it is blue now"),
		},
		ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(theme, blog, clientgoscheme.Scheme)},
	}

	ctx := reconcilers.WithStash(context.Background())
	ctx = reconcilers.StashRequest(ctx, reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(blog)})
	if err := paint(ctx, c.Config(), "blue"); err != nil {
		fmt.Println(err)
	}
	c.AssertExpectations(t)
	// Output:
}

// The client of a config is a TestClient: it can be told more objects and reactions while a test runs.
func ExampleExpectConfig_Config() {
	c := &rtesting.ExpectConfig{Scheme: clientgoscheme.Scheme}
	config := c.Config()
	testClient := config.Client.(rtesting.TestClient)
	testClient.AddGiven(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"}})
	testClient.PrependReactor("*", "*", rtesting.InduceFailure("update", "ConfigMap"))

	ctx := reconcilers.StashRequest(reconcilers.WithStash(context.Background()), reconcilers.Request{})
	fmt.Println(paint(ctx, config, "blue"))
	// Output: inducing failure for update ConfigMap
}

// The reconcilers of this module emit events as NewEvent expects them.
func ExampleNewEvent() {
	website := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	event := rtesting.NewEvent(
		website, clientgoscheme.Scheme, corev1.EventTypeNormal, "Created", "Created Deployment %q", "blog",
	)
	fmt.Println(event.Kind, event.NamespacedName, event.Type, event.Reason, event.Message)
	// Output: ConfigMap web/blog Normal Created Created Deployment "blog"
}

// Config.Eventf emits events as NewEventf expects them.
func ExampleNewEventf() {
	website := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog-0"}}
	event := rtesting.NewEventf(
		website, pod, clientgoscheme.Scheme, corev1.EventTypeWarning, "Slow", "Evict", "%s is slow", "blog-0",
	)
	fmt.Println(event.Kind, event.NamespacedName, event.Type, event.Reason, event.Action, event.Note)
	fmt.Println(event.Related.Kind, event.Related.Name)
	// Output:
	// ConfigMap web/blog Warning Slow Evict blog-0 is slow
	// Pod blog-0
}

func ExampleNewTrackRequest() {
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "theme"}}
	website := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "blog"}}
	request := rtesting.NewTrackRequest(theme, website, clientgoscheme.Scheme)
	fmt.Println(request.Tracker, "tracks", request.TrackedReference.Kind, request.TrackedReference.Name)
	// Output: web/blog tracks ConfigMap theme
}

func ExampleCreateTrackRequest() {
	request := rtesting.CreateTrackRequest("apps", "Deployment", "web", "shop").By("web", "blog")
	fmt.Println(request.Tracker, "tracks", request.TrackedReference.Kind, request.TrackedReference.Name)
	// Output: web/blog tracks Deployment shop
}

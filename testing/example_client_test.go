// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientgotesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rtesting "trueup.dev/testing"
)

// An API that is full, for one namespace.
func ExampleInduceFailure() {
	config := rtesting.ExpectConfig{
		Scheme: clientgoscheme.Scheme,
		WithReactors: []rtesting.ReactionFunc{
			rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{
				Namespace: "full", Error: errors.New("quota exceeded"),
			}),
			rtesting.InduceFailure("list", "ConfigMapList"),
		},
	}
	ctx := context.Background()
	c := config.Config()
	for _, namespace := range []string{"full", "other"} {
		err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}})
		fmt.Printf("create in %s: %v\n", namespace, err)
	}
	fmt.Println("list:", c.List(ctx, &corev1.ConfigMapList{}))
	// Output:
	// create in full: quota exceeded
	// create in other: <nil>
	// list: inducing failure for list ConfigMapList
}

// A reconciler that must not read the same thing again and again.
func ExampleCalledAtMostTimes() {
	config := rtesting.ExpectConfig{
		Scheme:       clientgoscheme.Scheme,
		WithReactors: []rtesting.ReactionFunc{rtesting.CalledAtMostTimes("list", "ConfigMapList", 1)},
	}
	c := config.Config()
	for range 2 {
		fmt.Println(c.List(context.Background(), &corev1.ConfigMapList{}))
	}
	// Output:
	// <nil>
	// list ConfigMapList called 2 times, expected 1 call(s)
}

// A reactor answers what the API in memory does not have..
func ExampleReactionFunc() {
	config := rtesting.ExpectConfig{Scheme: clientgoscheme.Scheme, Realistic: true}
	c := config.Config()
	c.Client.(rtesting.TestClient).AddReactor("get", "ConfigMap", func(
		action rtesting.Action,
	) (handled bool, answer runtime.Object, err error) {
		if get, ok := action.(rtesting.GetAction); !ok || get.GetName() != "answered" {
			return false, nil, nil
		}
		return true, &corev1.ConfigMap{Data: map[string]string{"by": "a reactor"}}, nil
	})

	for _, name := range []string{"answered", "other"} {
		configMap := &corev1.ConfigMap{}
		err := c.Get(context.Background(), client.ObjectKey{Namespace: "apps", Name: name}, configMap)
		fmt.Println(name, configMap.Data, err)
	}
	// Output:
	// answered map[by:a reactor] <nil>
	// other map[] configmaps "other" not found
}

// A reactor that hands back what it was given, or nil, has only changed it: the call goes on. So it can do what an
// admission webhook does.
func ExampleReactionFunc_admission() {
	config := rtesting.ExpectConfig{
		Scheme: clientgoscheme.Scheme,
		WithReactors: []rtesting.ReactionFunc{func(action rtesting.Action) (handled bool, answer runtime.Object, err error) {
			create, ok := action.(rtesting.CreateAction)
			if !ok || !action.Matches("create", "ConfigMap") {
				return false, nil, nil
			}
			configMap := create.GetObject().(*corev1.ConfigMap)
			if configMap.Data["size"] == "" {
				configMap.Data = map[string]string{"size": "small"}
			}
			return true, configMap, nil
		}},
	}
	c := config.Config()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "settings"}}
	fmt.Println(c.Create(context.Background(), configMap), configMap.Data)
	// Output: <nil> map[size:small]
}

// Realistic makes the API in memory do more of what a server does.
func ExampleExpectConfig_realistic() {
	for _, realistic := range []bool{false, true} {
		config := rtesting.ExpectConfig{
			Scheme: clientgoscheme.Scheme, Realistic: realistic,
			GivenObjects: []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "pod"}}},
		}
		ctx := context.Background()
		c := config.Config()
		pod := &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "apps", Name: "pod"}, pod); err != nil {
			panic(err)
		}
		before := pod.ResourceVersion
		if err := c.Update(ctx, pod); err != nil {
			panic(err)
		}
		fmt.Printf(
			"realistic=%t: resource version %s -> %s, generation %d\n", realistic, before, pod.ResourceVersion, pod.Generation,
		)
	}
	// Output:
	// realistic=false: resource version 999 -> 1000, generation 0
	// realistic=true: resource version 999 -> 999, generation 1
}

// The client of an ExpectConfig can be had without one, around any client.
func ExampleNewFakeClientWrapper() {
	tracker := clientgotesting.NewObjectTracker(clientgoscheme.Scheme, clientgoscheme.Codecs.UniversalDecoder())
	c := rtesting.NewFakeClientWrapper(
		fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjectTracker(tracker).Build(), tracker,
	)
	c.AddGiven(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "settings"}})

	key := client.ObjectKey{Namespace: "apps", Name: "settings"}
	fmt.Println(c.Get(context.Background(), key, &corev1.ConfigMap{}))
	fmt.Println(
		c.Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", GenerateName: "more-"},
		}),
	)
	for _, create := range c.CreateActions {
		fmt.Println(create.GetVerb(), create.GetResource().Resource, create.GetNamespace())
	}
	// Output:
	// <nil>
	// <nil>
	// create ConfigMap apps
}

func ExampleNewApplyAction() {
	action := rtesting.NewApplyAction(corev1apply.ConfigMap("settings", "apps"))
	fmt.Println(action.GetVerb(), action.GetResource().Resource, action.GetNamespace(), action.GetName())
	// Output: apply ConfigMap apps settings
}

func ExampleNewApplySubresourceAction() {
	action := rtesting.NewApplySubresourceAction(corev1apply.Pod("web", "apps"), "status")
	fmt.Println(rtesting.InduceFailure("apply", "Pod/status")(action))
	// Output: true <nil> inducing failure for apply Pod
}

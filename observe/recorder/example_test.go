// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

func ExampleNew() {
	var mgr manager.Manager // = ctrl.NewManager(…)
	r := recorder.New(recorder.Options{
		Bytes: 32 << 20,
		Mask:  observe.Mask{Paths: []string{"spec.password"}},
	})
	observe.Of(mgr).Add(r)
}

func ExampleRecorder_Objects() {
	r := recorder.New(recorder.Options{})
	p := &play{to: r} // passes events to the recorder, as a manager does
	p.fail("orders", fmt.Errorf("quota exceeded"))
	p.noOp("users")

	objects, _ := r.Objects(recorder.Query{Kind: "databases"})
	for _, o := range objects {
		fmt.Println(o.Object, o.State, o.Step, o.Error)
	}
	// Output:
	// Database default/orders Failing Database.Children.ConfigMap quota exceeded
	// Database default/users Succeeded
}

func ExampleRecorder_Recording() {
	r := recorder.New(recorder.Options{Objects: true})
	p := &play{to: r} // passes events to the recorder, as a manager does
	p.fail("orders", fmt.Errorf("quota exceeded"))

	found, ok := r.Recording("database", types.NamespacedName{Namespace: "default", Name: "orders"})
	fmt.Println(ok, found.Object)
	for _, run := range found.Runs {
		fmt.Println(run.Outcome, run.Error)
	}
	// Output:
	// true Database default/orders
	// Failed quota exceeded
}

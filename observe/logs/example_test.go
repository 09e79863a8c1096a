// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
	"trueup.dev/observe/logs"
)

func ExampleNew() {
	listener := logs.New(logr.New(lines{}), logs.Options{}) // observe.Of(mgr).Add(listener)

	run := &observe.Run{
		ID: "8d7f", Controller: "website", Object: types.NamespacedName{Namespace: "default", Name: "blog"},
		Causes: []observe.Cause{{Type: observe.CauseStartUp, Count: 1}},
	}
	listener.Observe(context.Background(), &observe.Call{
		Run: run, Path: []string{"Website", "Pages"}, Verb: observe.VerbDelete,
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Object: run.Object,
	})
	listener.Observe(context.Background(), &observe.ReconcileFinished{Run: run, Duration: time.Millisecond})
	// Output:
	// Reconciled
	// controller: website
	// namespace: default
	// name: blog
	// reconcileID: 8d7f
	// causes: [StartUp]
	// steps: [Website.Pages]
	// writes: [delete ConfigMap default/blog]
	// duration: 1ms
	// result: success
}

// lines prints each key and value in a line of its own.
type lines struct{}

func (lines) Init(logr.RuntimeInfo)            {}
func (lines) Enabled(int) bool                 { return true }
func (lines) Error(error, string, ...any)      {}
func (l lines) WithValues(...any) logr.LogSink { return l }
func (l lines) WithName(string) logr.LogSink   { return l }
func (lines) Info(_ int, message string, values ...any) {
	fmt.Println(message)
	for i := 0; i < len(values); i += 2 {
		fmt.Printf("%v: %v\n", values[i], values[i+1])
	}
}

// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"log"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/console"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

func ExampleAddToManager() {
	var mgr manager.Manager // = ctrl.NewManager(…)
	if err := console.AddToManager(mgr, console.Options{}); err != nil {
		log.Fatal(err)
	}
}

// A console on a port of its own, which only the same pod and kubectl port-forward reach.
func ExampleAddToManager_loopback() {
	var mgr manager.Manager // = ctrl.NewManager(…)
	err := console.AddToManager(mgr, console.Options{
		Address:  "127.0.0.1:9440",
		Recorder: recorder.New(recorder.Options{Mask: observe.Mask{Paths: []string{"spec.password"}}}),
	})
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleHandler() {
	var mgr manager.Manager // = ctrl.NewManager(…)
	r := recorder.New(recorder.Options{})
	observe.Of(mgr).Add(r)

	mux := http.NewServeMux() // of a server that checks permissions
	mux.Handle("/debug/console/", http.StripPrefix("/debug/console", console.Handler(r, observe.Of(mgr))))
}

// SPDX-License-Identifier: Apache-2.0

// Package memory makes the API in memory available to package sandbox. It is imported for its side effect:
//
//	import (
//		"trueup.dev/sandbox"
//		_ "trueup.dev/sandbox/memory"
//	)
//
//	env := sandbox.ForTest(t, sandbox.TestOptions{Options: sandbox.Options{Backend: sandbox.Memory}})
//
// The API runs in the process of the program, listens on the loopback interface, and is ready within milliseconds. It
// needs no control plane binary. It answers requests as a real API server does, and has the garbage collector, the
// namespace controller, the controllers of the usual workloads and a simulated node. It has no authorization, no
// quotas, no webhooks and no admission policies. The guide docs/testing-on-a-real-api.md lists what differs from a
// real API. Requests for subresources that it does not have, requests of other users, and writes of webhook
// configurations and policies fail with the status 501.
//
// Programs that do not import this package do not contain the API.
package memory

import (
	"trueup.dev/internal/memapi/apiserver"
	"trueup.dev/sandbox/internal/backend"
)

func init() {
	backend.Memory = func(o backend.Options) (backend.API, error) {
		s, err := apiserver.Start(apiserver.Options{
			Port: o.Port, Dir: o.Dir, DisableControllers: o.DisableControllers, DisablePods: o.DisablePods,
			LogOutput: o.LogOutput,
		})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package website is a complete controller to learn from: the kind Website, and what keeps sites running.
//
// It is laid out as kubebuilder does it: types in api/v1, the controller in internal/controller, manifests in config, a
// main program in cmd, admission webhooks in internal/webhook. Start reading in internal/controller. This package is
// for programs that run the controller beside other things, as trueup demo does:
//
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme})
//	…
//	err = website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory("/var/lib/records")})
package website

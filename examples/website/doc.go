// SPDX-License-Identifier: Apache-2.0

// Package website is a complete controller to learn from: the kind Website, and the objects that serve a site.
//
// The layout is that of kubebuilder: types in api/v1, the controller in internal/controller, manifests in config, a
// main program in cmd, admission webhooks in internal/webhook. Start reading in internal/controller. This package is
// for programs that run the controller beside other controllers, as trueup demo does:
//
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme})
//	…
//	err = website.SetupWithManager(ctx, mgr, website.Options{Records: dns.NewDirectory("/var/lib/records")})
package website

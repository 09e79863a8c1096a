// SPDX-License-Identifier: Apache-2.0

// Package database is a complete controller to learn from: the kind Database, and the objects that make up a PostgreSQL
// database in a cluster.
//
// The layout is that of kubebuilder: types in api/v1, the controller in internal/controller, admission webhooks in
// internal/webhook, manifests in config, a main program in cmd. Start reading in internal/controller. This package is
// for programs that run the controller beside other controllers:
//
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme})
//	…
//	err = database.SetupWithManager(ctx, mgr, database.Options{Backups: backup.NewDirectory("/var/lib/backups")})
package database

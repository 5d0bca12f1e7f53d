// Package wakeuptest makes what tests of others need of package wakeup.
package wakeuptest

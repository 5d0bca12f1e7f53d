// SPDX-License-Identifier: Apache-2.0

// d3-flame-graph has no types of its own. A method without an argument would read; here
// all write, and return the chart.
declare module "d3-flame-graph" {
	type Setter = (value: any) => FlameGraph;
	interface FlameGraph {
		(selection: any): void;
		width: Setter;
		cellHeight: Setter;
		inverted: Setter;
		sort: Setter;
		transitionDuration: Setter;
		minFrameSize: Setter;
		resetHeightOnZoom: Setter;
		tooltip: Setter;
		getName: Setter;
		setLabelHandler: Setter;
		setSearchMatch: Setter;
		setColorMapper: Setter;
		onClick: Setter;
		update: Setter;
	}
	export default function flamegraph(): FlameGraph;
}
declare module "*.css";

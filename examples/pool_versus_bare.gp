# Draws the data of `pool_versus_bare --chart-data FILE`:
#   gnuplot -e "data='FILE'; image='FILE.png'; note='machine, commit'" pool_versus_bare.gp
# An image name that ends in .svg gives an SVG.
if (!exists("note")) note = ""

if (strlen(image) > 4 && substr(image, strlen(image) - 3, strlen(image)) eq ".svg") {
  set terminal svg size 1200,760 dynamic background "white" font "sans,13"
} else {
  set terminal pngcairo size 1200,760 background "white" font "sans,11"
}
set output image

# The bars are horizontal to leave room for the names; the first contender is at the top.
set style fill solid 0.85 noborder
set yrange [*:*] reverse
set xrange [0:*]
set grid xtics lc rgb "#dddddd"
set border 3 lc rgb "#888888"
set tics nomirror scale 0.5 textcolor rgb "#222222"
set key off
set lmargin 27
set rmargin 6
height = 0.6
colour(name) = (name[1:4] eq "weft") ? 0x2b6cb0 : (name[1:2] eq "Go") ? 0x9aa5b1 : 0x68a357
shown(value) = value >= 100 ? sprintf("%.0f", value) : sprintf("%.3g", value)

# Columns of a block: name, median, minimum, maximum, MiB. Line 0 is the title.
set xtics font ",9" textcolor rgb "#666666"
set xrange [0:*]
set offsets 0, graph 0.14, 0.5, 0.5

# The titles are the lines that end with a quotation mark.
titles = system(sprintf("grep '\"$' '%s' | tr -d '\"'", data))
title_of(i) = system(sprintf("echo '%s' | sed -n %dp", titles, i + 1))
short_title_of(i) = system(sprintf("echo '%s' | sed -n '%ds/:.*//p'", titles, i + 1))

set multiplot layout 2,2 title "A fiber for each task, or a pool of fibers?\n{/*0.8 ".note."}" \
  font ",13"
do for [block = 0:1] {
  set title title_of(block)."\n{/*0.9 ns per task: median, minimum and maximum}" font ",10"
  plot data index block every ::1 \
         using (0.5 * $2):0:(0.5 * $2):(height / 2):(colour(strcol(1))):ytic(1) \
         with boxxyerror lc rgb variable, \
       data index block every ::1 using 4:0:(" ".shown($2)) with labels left font ",10", \
       data index block every ::1 using 2:0:3:4 with xerrorbars pt 0 lw 1.5 lc rgb "#333333"
  set title short_title_of(block)."\n{/*0.9 peak memory of the process, MiB}" font ",10"
  plot data index block every ::1 \
         using (0.5 * $5):0:(0.5 * $5):(height / 2):(colour(strcol(1))):ytic(1) \
         with boxxyerror lc rgb variable, \
       data index block every ::1 using 5:0:(" ".shown($5)) with labels left font ",10"
}
unset multiplot
